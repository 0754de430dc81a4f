#pragma once

#include <string>
#include <string_view>

namespace graft {

/// A library of the CUDA toolkit that is loaded when it is first asked for, so that Graft starts on
/// machines without it. It stays loaded.
class SharedLibrary {
 public:
  /// "libcublasLt.so.13": looked for where the system looks, then in the toolkit ($CUDA_PATH or
  /// /usr/local/cuda). Without it `is_loaded` is false.
  explicit SharedLibrary(std::string_view name);

  bool is_loaded() const { return handle_ != nullptr; }
  /// Why it is not; else which function was not found in it. Empty if all is well.
  const std::string& problem() const { return problem_; }

  /// Sets `function` to the one of that name.
  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name);

  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace graft

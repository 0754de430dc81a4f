#include "core/device/cuda/shared_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "core/base/error.h"

namespace graft {
namespace {

std::vector<std::string> places(std::string_view name) {
  const char* const set = std::getenv("CUDA_PATH");
  const std::string toolkit = set == nullptr || *set == '\0' ? "/usr/local/cuda" : set;
  return {std::string(name), text(toolkit, "/lib64/", name), text(toolkit, "/lib/", name)};
}

}  // namespace

SharedLibrary::SharedLibrary(std::string_view name) {
  for (const std::string& place : places(name)) {
    handle_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      problem_.clear();
      return;
    }
    // Of the places, the first one's answer says most, unless a file was there and did not load.
    const std::string answer = dlerror();
    if (problem_.empty()) problem_ = answer;
  }
}

void* SharedLibrary::address(const char* name) {
  void* const found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
  if (found == nullptr && problem_.empty()) problem_ = text("it has no function ", name);
  return found;
}

}  // namespace graft

#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

namespace graft {

// Where a build has no tests, CMake says so to the files whose functions only tests call.
#if defined(GRAFT_WITHOUT_TESTS)
constexpr bool kTestsFollow = false;
#else
constexpr bool kTestsFollow = true;
#endif

template <typename Function, typename Result, typename... Arguments>
concept Returns = std::is_invocable_r_v<Result, Function, Arguments...>;

template <typename Signature>
class ForTests;

/// A function that only tests call: what makes a row's samples, the net of a rewrite. In a build
/// without tests it is forgotten as it is given, so that the compiler leaves its code out.
template <typename Result, typename... Arguments>
class ForTests<Result(Arguments...)> {
 public:
  ForTests() = default;
  ForTests(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): .samples = nullptr
  template <Returns<Result, Arguments...> Given, bool kept = kTestsFollow>
  ForTests(Given function) {  // NOLINT(google-explicit-constructor): .samples = of_this_op
    if constexpr (kept) function_ = std::move(function);
  }

  explicit operator bool() const { return static_cast<bool>(function_); }
  /// Wants a function that was given and kept.
  Result operator()(Arguments... arguments) const {
    return function_(std::forward<Arguments>(arguments)...);
  }

 private:
  std::function<Result(Arguments...)> function_;
};

}  // namespace graft

// What a small program says of an exception that nobody catches. libstdc++ names its type, for
// which it brings 40 KB that take names apart; this stands in the place of its handler.
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace __gnu_cxx {

// NOLINTNEXTLINE(bugprone-reserved-identifier): libstdc++'s name
void __verbose_terminate_handler() {
  static bool is_second = false;
  if (is_second) std::abort();  // what() threw
  is_second = true;
  const std::exception_ptr exception = std::current_exception();
  if (!exception) {
    std::fputs("terminate called without an active exception\n", stderr);
    std::abort();
  }
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "terminate called after an exception: %s\n", error.what());
  } catch (...) {
    std::fputs("terminate called after an exception\n", stderr);
  }
  std::abort();
}

}  // namespace __gnu_cxx

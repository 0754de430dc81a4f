// What libFuzzer calls. GRAFT_FUZZ_TARGETS is the list of this program, and GRAFT_FUZZ_TARGET says
// which target gets the bytes; scripts/fuzz sets it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

const Target* find(std::string_view name) {
  for (const Target& target : GRAFT_FUZZ_TARGETS()) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

/// Ends the program where the environment names none.
const Target& chosen() {
  static const Target* const target = [] {
    const char* const name = std::getenv("GRAFT_FUZZ_TARGET");
    const Target* const found = find(name == nullptr ? "" : name);
    if (found == nullptr) {
      std::fputs("GRAFT_FUZZ_TARGET names no target; there are:", stderr);
      for (const Target& one : GRAFT_FUZZ_TARGETS()) {
        std::fprintf(stderr, " %s", std::string(one.name).c_str());
      }
      std::fputs("\n", stderr);
      std::exit(2);
    }
    return found;
  }();
  return *target;
}

}  // namespace
}  // namespace graft::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  graft::fuzz::chosen().run({reinterpret_cast<const char*>(data), size});
  return 0;
}

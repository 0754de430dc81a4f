#include "tests/isa/shared.h"

void fill(std::vector<float>& numbers);
[[noreturn]] void refuse();

#define GRAFT_JOIN_NAMES(a, b) a##b
#define GRAFT_ENTRY(isa) GRAFT_JOIN_NAMES(graft_kernels_, isa)

/// Throws where there is nothing to compute.
extern "C" void GRAFT_ENTRY(ISA)(Answers* answers, std::size_t count) {
  if (count == 0) refuse();
  answers->numbers.resize(count);
  fill(answers->numbers);
  scale(answers->numbers, 2.0F);
  answers->scale_lies_at = reinterpret_cast<std::uintptr_t>(&scale);
  answers->calls = calls<float>();
}

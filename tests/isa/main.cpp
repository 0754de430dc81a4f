// Runs the set of kernels that the first argument names, and prints what it answers.
#include <cstdio>
#include <cstring>

#include "tests/isa/shared.h"

using Entry = void (*)(Answers*, std::size_t);
extern "C" {
void graft_kernels_baseline(Answers* answers, std::size_t count);
void graft_kernels_avx2(Answers* answers, std::size_t count);
void graft_kernels_avx512(Answers* answers, std::size_t count);
}

int main(int argc, char** argv) {
  const char* const wanted = argc > 1 ? argv[1] : "baseline";
  Entry entry = graft_kernels_baseline;
  if (std::strcmp(wanted, "avx2") == 0) entry = graft_kernels_avx2;
  if (std::strcmp(wanted, "avx512") == 0) entry = graft_kernels_avx512;

  Answers answers;
  bool was_refused = false;
  try {
    entry(&answers, 0);
  } catch (const Refused&) {
    was_refused = true;
  }
  entry(&answers, 1000);
  std::vector<float> own = {1.0F};
  scale(own, 2.0F);
  const bool is_own = answers.scale_lies_at == reinterpret_cast<std::uintptr_t>(&scale);
  std::printf("last %.0f, %s, calls %d, scale is %s\n", answers.numbers.back(),
              was_refused ? "refused" : "not refused", answers.calls,
              is_own ? "the program's" : "its own");
  return 0;
}

// How libFuzzer makes new models of old ones. One in sixteen is damaged as bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/fuzz/models/mutate.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  const char* const target = std::getenv("GRAFT_FUZZ_TARGET");
  if (target == nullptr || std::string_view(target) != "pipeline" || seed % 16 == 0) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  const std::string mutant =
      graft::fuzz::mutate_model({reinterpret_cast<const char*>(data), size}, seed);
  if (mutant.empty() || mutant.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::ranges::copy(mutant, data);
  return mutant.size();
}

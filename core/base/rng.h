#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace graft {

/// Philox 4x32-10: a counter-based generator. The value at an index depends only on the key and
/// the index, so results are the same for any number of threads and any order, and a mask can be
/// made again instead of stored. Source: Salmon et al., "Parallel Random Numbers: As Easy as
/// 1, 2, 3", SC 2011.
class Philox {
 public:
  /// Streams with different (seed, stream) are independent.
  explicit Philox(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  /// Four random words for a counter.
  std::array<std::uint32_t, 4> block(std::uint64_t counter) const;
  /// The words of kBlocks counters from `counter` on, one block after the other: the same as
  /// `block` gives, several times faster.
  static constexpr int kBlocks = 64;
  void blocks(std::uint64_t counter, std::uint32_t* words) const;

  /// The index-th of an endless sequence of values in [0, 1), 24 bits each.
  float uniform(std::uint64_t index) const {
    return static_cast<float>(block(index >> 2)[index & 3] >> 8) * 0x1p-24F;
  }
  /// The index-th of an endless sequence of values in [0, 1), 53 bits each.
  double uniform_double(std::uint64_t index) const;
  /// The index-th of an endless sequence of standard normal values (Box-Muller).
  double normal(std::uint64_t index) const;
  /// The index-th of an endless sequence of integers in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

/// Shuffles [first, last) by Fisher-Yates; the same seed and stream give the same order everywhere.
template <class Iterator>
void shuffle(Iterator first, Iterator last, const Philox& random) {
  const auto count = static_cast<std::uint64_t>(last - first);
  for (std::uint64_t i = count; i > 1; --i) {
    using std::swap;
    swap(first[static_cast<std::ptrdiff_t>(i - 1)],
         first[static_cast<std::ptrdiff_t>(random.below(i, i))]);
  }
}

}  // namespace graft

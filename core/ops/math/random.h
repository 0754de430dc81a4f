#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "core/base/rng.h"
#include "core/ops/kernel.h"

namespace graft {

/// Where the random numbers of a node come from. With a `seed` attribute: MT19937 seeded with seed
/// + the run's step, whose numbers NumPy's RandomState and so the ONNX reference give. Without:
/// Philox, by the node's id and the step, which threads can share; the number of an element is the
/// one at its index.
struct RandomSource {
  std::uint64_t seed = 0;
  std::uint64_t op_id = 0;
  bool is_twister = false;

  /// Of a standard op: from its seed, an int or a float, and the name of its output.
  static RandomSource of(const Node& node);

  std::mt19937 twister(std::uint64_t step) const {
    return std::mt19937(static_cast<std::uint32_t>(seed + step));
  }
  Philox philox(std::uint64_t step) const { return Philox(seed, first_stream() + step); }
  /// That of step 0. Ids and steps are small and regular: mixing (splitmix64) keeps streams of
  /// different ops apart.
  std::uint64_t first_stream() const {
    std::uint64_t id = op_id + 0x9e3779b97f4a7c15;
    id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9;
    id = (id ^ (id >> 27)) * 0x94d049bb133111eb;
    return id ^ (id >> 31);
  }
};

/// 53 bits in [0, 1), as NumPy's random_sample.
inline double twister_uniform(std::mt19937& twister) {
  const std::uint32_t high = twister() >> 5;
  const std::uint32_t low = twister() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

/// The numbers of one run, one after the other.
class RandomNumbers {
 public:
  RandomNumbers(const RandomSource& source, std::uint64_t step)
      : is_twister_(source.is_twister), philox_(source.philox(step)) {
    if (is_twister_) twister_ = source.twister(step);
  }

  /// In [0, 1).
  double uniform() {
    return is_twister_ ? twister_uniform(twister_) : philox_.uniform_double(index_++);
  }
  /// The same for an element: the twister's next, Philox's at that index.
  double uniform_at(std::int64_t index) {
    return is_twister_ ? twister_uniform(twister_)
                       : philox_.uniform_double(static_cast<std::uint64_t>(index));
  }
  /// Standard normal; of the twister by Marsaglia's polar method, as NumPy's randn.
  double normal();

 private:
  bool is_twister_;
  Philox philox_;
  std::mt19937 twister_;
  std::uint64_t index_ = 0;
  std::optional<double> spare_;
};

}  // namespace graft

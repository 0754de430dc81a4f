#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ops/kernels/conv_geometry.h"

namespace graft {

/// An output of a convolution and the input that a tap lets it meet: offsets in elements from where
/// the stretch starts.
struct Meeting {
  std::int32_t x;
  std::int32_t y;
};

/// All meetings in a stretch of outputs: by tap, and for each by run of outputs.
class Meetings {
 public:
  /// Outputs of a run.
  explicit Meetings(std::int64_t run) : run_(run) {}

  void start_tap() { output_ = 0; }
  /// For each output in order: nullptr where the tap meets padding.
  void add_output(const Meeting* meeting);
  void finish(std::int64_t taps);

  std::int64_t runs() const { return runs_; }
  std::span<const Meeting> of(std::int64_t run, std::int64_t tap) const;

 private:
  std::int64_t run_;
  std::int64_t output_ = 0;
  std::int64_t runs_ = 0;
  std::vector<Meeting> list_;
  std::vector<std::size_t> starts_;  // [tap][run], and the end
};

/// Consecutive outputs of a convolution: some whole images, or of one image some rows (of its first
/// spatial axis). Positions count from the start of the batch.
struct Stretch {
  std::int64_t x_first;
  std::int64_t x_count;  ///< positions from the first that is met to the last
  std::int64_t y_first;
  std::shared_ptr<const Meetings> meetings;
};

/// Elements from one position to the next, and the outputs of a run.
struct StretchSteps {
  std::int64_t x;
  std::int64_t y;
  std::int64_t run;
};

/// Cuts the batch into stretches whose inputs, about `positions` of them, stay in a cache.
/// Stretches that look alike share their meetings.
std::vector<Stretch> cut_into_stretches(const ConvGeometry& geometry, std::int64_t positions,
                                        const StretchSteps& steps);

}  // namespace graft

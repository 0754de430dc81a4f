#pragma once

#include <string_view>

namespace graft {

// What a training step keeps of a parameter beside its optimizer's state, as behind the parameter's
// name: "<name>.average". No optimizer may call its own so.

/// The average of what it was (TrainOptions::ema).
inline constexpr std::string_view kAverage = "average";
/// The sum of its gradients until the next update (TrainOptions::accumulate).
inline constexpr std::string_view kAccumulated = "accumulated";
/// What trains in f32 in place of a parameter or a running statistic of 16 bits.
inline constexpr std::string_view kMaster = "master";

}  // namespace graft

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/expr.h"
#include "train/masters.h"

namespace graft {

/// Whether that is what unique_name() makes of the stem: "w.average" or "w.average_1", but neither
/// "w.averages" nor "w.average.average".
bool is_name_from(std::string_view stem, std::string_view name);

/// Lets averages follow what the step changes of the model (TrainOptions::ema): parameters, running
/// statistics and what is tied to parameters, "<name>.average", of 32 bits at least. What `state`
/// holds, the optimizer's own, has none. `step`: i64, 1 in the first update. Returns the averages,
/// which start as copies. Source: Polyak and Juditsky, "Acceleration of Stochastic Approximation by
/// Averaging", 1992, with weights that decay.
std::vector<Value*> add_averages(Graph& graph, const std::vector<Master>& masters, const Expr& step,
                                 float decay, const StateTensors& state);

/// Copies into each of these tensors its average, if `state` has one; returns what those held.
std::map<std::string, Tensor> take_averages(const std::map<std::string, Tensor>& weights,
                                            const StateTensors& state);

}  // namespace graft

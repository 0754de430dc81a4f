#pragma once

#include <cstdint>
#include <string>

#include "core/ops/kernels/axis_loop.h"

namespace graft {

enum class LossReduction { none, sum, mean };

inline LossReduction loss_reduction(const Attributes& attributes) {
  const std::string text = attributes.get_string("reduction", "mean");
  if (text == "none") return LossReduction::none;
  return text == "sum" ? LossReduction::sum : LossReduction::mean;
}

/// What one loss node says, decoded. `first` is the input index of the scores; labels and weights
/// follow.
struct LossSetup {
  LossSetup(const KernelRequest& request, int first)
      : loop(request.shape(first), 1),
        first_input(first),
        positions(request.shape(first + 1).size()),
        reduction(loss_reduction(request.attributes())),
        has_ignored(request.attributes().has("ignore_index")),
        ignored(request.attributes().get_int("ignore_index", 0)),
        smoothing(request.attributes().get_float("label_smoothing", 0.0F)),
        wide_labels(request.dtype(first + 1) == DType::i64),
        has_weights(request.has_input(first + 2)),
        has_log_prob(request.has_output(1)) {
    if (loop.axis == 0 && positions > 0) {
      fail(ErrorKind::shape, request.node().label(), ": scores ", request.shape(first),
           " have no classes");
    }
  }

  AxisLoop loop;  ///< along the classes
  int first_input;
  std::int64_t positions;
  LossReduction reduction;
  bool has_ignored;
  std::int64_t ignored;
  double smoothing;
  bool wide_labels;
  bool has_weights;
  bool has_log_prob;
};

}  // namespace graft

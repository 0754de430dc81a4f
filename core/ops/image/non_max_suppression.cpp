#include "core/ops/registry.h"

namespace graft {
namespace {

/// boxes [B,N,4], scores [B,C,N]; result [K,3]: batch, class, box.
void infer_non_max_suppression(InferContext& context) {
  context.require_rank(0, 3, 3);
  context.require_rank(1, 3, 3);
  context.set_output(0, DType::i64, SymShape{Dim(), Dim(3)});
}

std::vector<Sample> non_max_suppression_samples() {
  const SampleInput corners{.shape = {1, 6, 4},
                            .values = {0, 0,  1, 1,  0, 0.1,  1, 1.1,  0, -0.1, 1, 0.9,
                                       0, 10, 1, 11, 0, 10.1, 1, 11.1, 0, 100,  1, 101}};
  const SampleInput scores{.shape = {1, 1, 6}, .values = {0.9, 0.75, 0.6, 0.95, 0.5, 0.3}};
  const auto count = [](double value) {
    return SampleInput{.shape = {1}, .values = {value}, .dtype = DType::i64};
  };
  const auto threshold = [](double value) {
    return SampleInput{.shape = {1}, .values = {value}, .dtype = DType::f32};
  };
  return {
      {"overlap", {corners, scores, count(3), threshold(0.5), threshold(0)}},
      {"scores", {corners, scores, count(9), threshold(0.5), threshold(0.4)}},
      {"no_threshold", {corners, scores, count(2)}},
      {"none", {corners, scores}},
      {"centers",
       {{.shape = {1, 2, 4}, .values = {0.5, 0.5, 1, 1, 0.5, 0.6, 1, 1}},
        {.shape = {1, 2, 2}, .values = {0.9, 0.8, 0.1, 0.2}},
        count(2),
        threshold(0.5)},
       {{"center_point_box", 1}}},
  };
}

}  // namespace

void register_non_max_suppression(OpRegistry& registry) {
  registry.add({.name = "NonMaxSuppression",
                .since = {{10}, {11}},
                .inputs = {{"boxes"},
                           {"scores"},
                           {"max_output_boxes_per_class", Arity::optional},
                           {"iou_threshold", Arity::optional},
                           {"score_threshold", Arity::optional}},
                .outputs = {{"selected_indices"}},
                .attributes = {{"center_point_box", AttributeType::integer}},
                .infer = infer_non_max_suppression,
                .is_dynamic = true,
                .backward = NotDifferentiable{"it gives indices"},
                .samples = non_max_suppression_samples});
}

}  // namespace graft

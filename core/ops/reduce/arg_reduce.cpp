#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_arg_reduce(InferContext& context) {
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, DType::i64);
  const int axis = normalize_axis(context.attributes().get_int("axis", 0), shape->rank(),
                                  context.node().label());
  const bool keep = context.attributes().get_int("keepdims", 1) != 0;
  if ((*shape)[axis].is_known() && (*shape)[axis].value() == 0) {
    context.fail(ErrorKind::shape, "axis ", axis, " of ", *shape, " is empty and has no extreme");
  }
  std::vector<Dim> dims;
  for (int i = 0; i < shape->rank(); ++i) {
    if (i != axis) {
      dims.push_back((*shape)[i]);
    } else if (keep) {
      dims.emplace_back(1);
    }
  }
  context.set_output(0, DType::i64, SymShape(std::move(dims)));
}

std::vector<Sample> arg_samples() {
  const auto input = [](Shape shape) {
    return SampleInput{.shape = std::move(shape), .distinct = true};
  };
  const SampleInput ties{.shape = {2, 4}, .values = {1, 3, 3, 0, 2, 2, 2, 2}};
  return {
      {"first_axis", {input({3, 4})}},
      {"last_axis", {input({3, 5})}, {{"axis", -1}}},
      {"middle", {input({2, 5, 3})}, {{"axis", 1}}},
      {"no_keepdims", {input({2, 5, 3})}, {{"axis", 1}, {"keepdims", 0}}},
      {"ties_first", {ties}, {{"axis", 1}}},
      {"ties_last", {ties}, {{"axis", 1}, {"select_last_index", 1}}},
      {"ties_middle", {ties}, {{"axis", 0}, {"select_last_index", 1}}},
      {"one_element", {input({1, 3, 1})}, {{"axis", 0}}},
      {"vector", {input({9})}, {{"axis", 0}, {"keepdims", 0}}},
      {"empty_result", {input({0, 3})}, {{"axis", 1}}},
      {"large", {input({700, 101})}, {{"axis", 1}}},
      {"large_columns", {input({67, 1031})}, {{"axis", 0}}},
  };
}

OpDef arg_reduction(std::string_view name) {
  return {.name = name,
          .since = {{1}, {11, "negative axes"}, {12, "select_last_index"}, {13, "bfloat16"}},
          .inputs = {{"data"}},
          .outputs = {{"reduced"}},
          .attributes = {{"axis", AttributeType::integer},
                         {"keepdims", AttributeType::integer},
                         {"select_last_index", AttributeType::integer}},
          .infer = infer_arg_reduce,
          .backward = NotDifferentiable{"its result is an index"},
          .samples = arg_samples};
}

}  // namespace

/// ArgMax, ArgMin. A NaN counts as the extreme, as in NumPy and PyTorch.
void register_arg_reduce(OpRegistry& registry) {
  registry.add(arg_reduction("ArgMax"));
  registry.add(arg_reduction("ArgMin"));
}

}  // namespace graft

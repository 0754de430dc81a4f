#include "core/ops/lowering.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_count_correct(InferContext& context) {
  context.require_rank(0, 1, INT32_MAX);
  const SymShape* const scores = context.shape(0);
  const SymShape* const target = context.shape(1);
  if (scores != nullptr && target != nullptr && scores->known() && target->known()) {
    const int axis = normalize_axis(context.attributes().get_int("axis", 1), scores->rank(),
                                    context.node().label());
    std::vector<Dim> dims = scores->dims();
    dims.erase(dims.begin() + axis);
    const SymShape wanted(std::move(dims));
    if (*target != wanted) {
      context.fail(ErrorKind::shape, "class indices ", *target, " for scores ", *scores,
                   " along axis ", axis, ", wanted ", wanted);
    }
    if ((*scores)[axis].value() == 0) {
      context.fail(ErrorKind::shape, "axis ", axis, " of ", *scores, " has no class");
    }
  }
  context.set_output(0, DType::i64, SymShape(Shape{}));
}

std::vector<Expr> lower_count_correct(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Expr best =
      call("ArgMax", {n.x(0)}, {{"axis", n.attributes().get_int("axis", 1)}, {"keepdims", 0}});
  Expr is_right = equal(best, n.x(1));
  const std::int64_t ignored = n.attributes().get_int("ignore_index", -1);
  if (ignored >= 0) {
    const Expr is_left_out = equal(best, constant_like(best, static_cast<double>(ignored)));
    is_right = call("And", {is_right, logical_not(is_left_out)});
  }
  return {reduce_sum(cast(is_right, DType::i64), {}, false)};
}

std::vector<Sample> count_correct_samples() {
  const auto scores = [](Shape shape) {
    return SampleInput{.shape = std::move(shape), .distinct = true};
  };
  const auto labels = [](Shape shape, std::vector<double> values) {
    return SampleInput{.shape = std::move(shape), .values = std::move(values), .dtype = DType::i64};
  };
  const auto cyclic = [&](const Shape& shape, int classes) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.size(); ++i) {
      values.push_back(static_cast<double>(i % classes));
    }
    return labels(shape, std::move(values));
  };
  const SampleInput ties{.shape = {3, 4}, .values = {1, 3, 3, 0, 2, 2, 2, 2, 0, 1, 5, 5}};
  return {
      {"rows", {scores({5, 3}), labels({5}, {0, 1, 2, 0, 1})}},
      {"ties_first", {ties, labels({3}, {1, 0, 3})}},
      {"negative", {ties, labels({3}, {-100, 0, 2})}},
      {"left_out", {ties, labels({3}, {1, 0, 2})}, {{"ignore_index", 1}}},
      {"columns", {scores({2, 3, 4}), cyclic({2, 4}, 3)}},
      {"last_axis", {scores({2, 4, 3}), cyclic({2, 4}, 3)}, {{"axis", -1}}},
      {"long_rows", {scores({7, 1100}), cyclic({7}, 1100)}},
      {"many", {scores({700, 3}), cyclic({700}, 3)}},
      {"no_rows", {scores({0, 3}), labels({0}, {})}},
  };
}

}  // namespace

/// y = how many class indices `target` name the first largest score along `axis`: an i64 scalar.
/// `target` has the shape of the scores without that axis. A NaN is the largest, as for ArgMax.
/// Targets of the class `ignore_index` do not count; below 0, the default, there is none.
void register_count_correct(OpRegistry& registry) {
  registry.add(
      {.name = "CountCorrect",
       .domain = kInternalDomain,
       .inputs = {{"scores"}, {"target"}},
       .outputs = {{"count"}},
       .attributes = {{"axis", AttributeType::integer}, {"ignore_index", AttributeType::integer}},
       .infer = infer_count_correct,
       .lower = lower_count_correct,
       .backward = NotDifferentiable{"its result is a number of places"},
       .samples = count_correct_samples});
}

}  // namespace graft

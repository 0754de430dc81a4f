#include <algorithm>

#include "core/ops/registry.h"

namespace graft {
namespace {

/// The first input is not read: it comes before.
constexpr int kFirst = 1;
/// An alias is a pair of places, so that a row lists them.
constexpr int kMostTensors = 64;

void infer_all_reduce(InferContext& context) {
  const int count = context.input_count() - kFirst;
  if (count < 1 || count > kMostTensors || context.node().output_count() != count) {
    context.fail(ErrorKind::model, count, " tensors and ", context.node().output_count(),
                 " outputs, wanted 1 to ", kMostTensors, " and as many");
  }
  for (int i = 0; i < count; ++i) {
    context.require_same_dtype({kFirst, kFirst + i});
    context.copy_type(kFirst + i, i);
  }
}

std::vector<Alias> aliases_of_all() {
  std::vector<Alias> all;
  for (int i = 0; i < kMostTensors; ++i) all.push_back({i, kFirst + i, AliasKind::in_place});
  return all;
}

std::vector<Sample> all_reduce_samples() {
  const SampleInput before{.shape = {}};
  return {
      {"one", {before, {.shape = {3, 7}}}},
      {"two", {before, {.shape = {3, 7}}, {.shape = {5}}}, {}, 2},
      {"scalar_and_large", {before, {.shape = {}}, {.shape = {40000}}}, {}, 2},
      {"empty", {before, {.shape = {0}}}},
      {"short_on_the_wire", {before, {.shape = {3, 7}}}, {{"wire", static_cast<int>(DType::bf16)}}},
  };
}

}  // namespace

void register_all_reduce(OpRegistry& registry);
void register_all_reduce(OpRegistry& registry) {
  // outputs[i]: the mean of tensors[i] over the ranks of a communicator, which all run this node.
  // `before` gives nodes of a graph the order that all ranks keep, and keeps them from being
  // folded. wire: the type in which f32 travels, a DType; f32 where left out.
  registry.add(
      {.name = "AllReduce",
       .domain = kInternalDomain,
       .since = {{1}},
       .inputs = {{"before"}, {"tensors", Arity::variadic}},
       .outputs = {{"means", Arity::variadic}},
       .attributes = {{"communicator", AttributeType::integer}, {"wire", AttributeType::integer}},
       .infer = infer_all_reduce,
       .aliases = aliases_of_all(),
       .backward = NotDifferentiable{"it averages gradients at the end of a step"},
       .samples = all_reduce_samples});
}

}  // namespace graft

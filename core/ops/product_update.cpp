#include "core/ops/registry.h"

namespace graft {
namespace {

void infer_product_update(InferContext& context) {
  context.require_same_dtype({0, 1, 2, 3});
  for (const int i : {0, 1, 2}) context.require_rank(i, 2, 2);
  context.require_rank(3, 0, 0);
  context.copy_type(2, 0);
  std::vector<Shape> known;
  for (const int i : {0, 1, 2}) {
    if (context.shape(i) == nullptr || !context.shape(i)->known()) return;
    known.push_back(*context.shape(i)->known());
  }
  const auto flag = [&](const char* name) { return context.attributes().get_int(name, 0) != 0; };
  const int a_rows = flag("transA") ? 1 : 0;
  const int b_rows = flag("transB") ? 1 : 0;
  const Shape product{known[0][a_rows], known[1][1 - b_rows]};
  if (known[0][1 - a_rows] != known[1][b_rows] || product != known[2]) {
    context.fail(ErrorKind::shape, "the product of ", known[0], " and ", known[1],
                 ", transposed as wanted, does not fit a parameter ", known[2]);
  }
}

std::vector<Sample> samples() {
  const SampleInput rate{.shape = {}, .values = {0.1}};
  const auto flags = [](int a, int b) { return Attributes{{"transA", a}, {"transB", b}}; };
  return {
      {"plain", {{.shape = {3, 5}}, {.shape = {5, 7}}, {.shape = {3, 7}}, rate}},
      {"trans_a", {{.shape = {5, 3}}, {.shape = {5, 7}}, {.shape = {3, 7}}, rate}, flags(1, 0)},
      {"trans_b", {{.shape = {3, 5}}, {.shape = {7, 5}}, {.shape = {3, 7}}, rate}, flags(0, 1)},
      {"trans_both", {{.shape = {5, 9}}, {.shape = {2, 5}}, {.shape = {9, 2}}, rate}, flags(1, 1)},
      {"alpha",
       {{.shape = {3, 5}}, {.shape = {5, 7}}, {.shape = {3, 7}}, rate},
       {{"alpha", AttributeValue(0.5F)}}},
      {"one_inner",
       {{.shape = {1, 33}}, {.shape = {1, 19}}, {.shape = {33, 19}}, rate},
       flags(1, 0)},
      {"one_inner_trans_b",
       {{.shape = {6, 1}}, {.shape = {5, 1}}, {.shape = {6, 5}}, rate},
       flags(0, 1)},
      {"few_inner",
       {{.shape = {3, 300}}, {.shape = {3, 200}}, {.shape = {300, 200}}, rate},
       flags(1, 0)},
      {"many_inner",
       {{.shape = {301, 19}}, {.shape = {301, 23}}, {.shape = {19, 23}}, rate},
       flags(1, 0)},
      {"no_inner", {{.shape = {2, 0}}, {.shape = {0, 3}}, {.shape = {2, 3}}, rate}},
      {"empty", {{.shape = {0, 4}}, {.shape = {4, 3}}, {.shape = {0, 3}}, rate}},
      {"over_threads",
       {{.shape = {29, 130}}, {.shape = {29, 190}}, {.shape = {130, 190}}, rate},
       flags(1, 0)},
  };
}

}  // namespace

/// Plain SGD on the gradient of a matrix product, without the gradient in between:
/// parameter - lr * alpha * a' b', where a' is a or its transpose. a': [m,k], b': [k,n].
void register_product_update(OpRegistry& registry) {
  registry.add({.name = "SgdProductUpdate",
                .domain = kInternalDomain,
                .since = {{1}},
                .inputs = {{"a"}, {"b"}, {"parameter"}, {"lr"}},
                .outputs = {{"new_parameter"}},
                .attributes = {{"transA", AttributeType::integer},
                               {"transB", AttributeType::integer},
                               {"alpha", AttributeType::number}},
                .infer = infer_product_update,
                .aliases = {{0, 2, AliasKind::state}},
                .backward = NotDifferentiable{"an optimizer update is the end of a step"},
                .samples = samples});
}

}  // namespace graft

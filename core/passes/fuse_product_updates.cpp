#include <algorithm>
#include <utility>

#include "core/base/machine.h"
#include "core/ops/alias.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace product_update_fusion {

/// Empty op where the node has none.
const ProductForm& product_form_of(const Node& node) {
  return OpRegistry::instance().get(node).product_form;
}

bool has_product_form(const Node& node) {
  return !product_form_of(node).op.empty();
}

/// The product that makes the gradient for this update alone.
const Pattern parameter = any();
const Pattern a = any();
const Pattern b = any();
const Pattern gradient =
    op("Gemm", {a, b}, [](const Node& gemm) { return gemm.input(2) == nullptr; });

/// A product that only adds to the parameter never costs more than one that is stored. Other
/// updates take the gradient piece by piece, which saves its way to memory and back, about a tenth
/// of both ops: where it fits no second cache, and has so few terms that a product in pieces costs
/// little more than a whole one.
bool pays(const Match& m) {
  const ProductForm& form = product_form_of(m.root());
  if (form.only_adds != nullptr && form.only_adds(m.root())) return true;
  constexpr std::size_t kOfOperands = 4;
  const std::size_t of_operands = m[a].value()->bytes() + m[b].value()->bytes();
  return m[gradient].value()->bytes() >=
         std::max(std::size_t{kSecondCacheBytes}, kOfOperands * of_operands);
}

/// On a card the gradients of other updates are made by launches as well, and all updates then go
/// by one: only where it saves the way of a large gradient to memory and back does more than a
/// launch come out.
bool pays_on_cards(const Match& m) {
  constexpr std::size_t kLarge = std::size_t{4} << 20;
  const ProductForm& form = product_form_of(m.root());
  return form.only_adds != nullptr && form.only_adds(m.root()) &&
         m[gradient].value()->bytes() >= kLarge;
}

/// The update runs after that of other parameters, so the product must not read one.
bool can_wait(const Match& m) {
  return !origin(m[a].value())->is_variable && !origin(m[b].value())->is_variable;
}

/// The settings of both.
Attributes joined_settings(const Match& m) {
  Attributes settings = m.root().attributes;
  const Attributes& product = m.node(gradient).attributes;
  for (const Attribute& one : product) {
    if (one.name == "transA" || one.name == "transB") settings.set(one);
  }
  const float alpha = product.get_float("alpha", 1.0F);
  if (alpha != 1.0F) settings.set({"scale", alpha});
  return settings;
}

/// The update with a product of those in place of its gradient.
Results with_product(const Match& m, Value* left, Value* right, Attributes settings) {
  const Node& update = m.root();
  const std::string_view name = product_form_of(update).op;
  const OpDef& def = *OpRegistry::instance().find(name, kInternalDomain);
  std::vector<Value*> inputs = update.copy_inputs();
  inputs[1] = left;
  inputs.resize(def.inputs.size() - 1, nullptr);
  inputs.push_back(right);
  std::vector<std::string> outputs;
  for (int i = 0; i < update.output_count(); ++i) {
    const Value* const old = update.output(i);
    outputs.push_back(old == nullptr ? "" : m.graph().unique_name(old->name()));
  }
  Node* const fused = m.builder().node(name, kInternalDomain, inputs, outputs, std::move(settings));
  fused->set_name(update.name());
  std::vector<Expr> results;
  for (int i = 0; i < update.output_count(); ++i) {
    results.push_back(m.builder().expr(fused->output(i)));
  }
  return results;
}

Results product_update(const Match& m) {
  return with_product(m, m[a].value(), m[b].value(), joined_settings(m));
}

/// The gradient of a bias: rows are summed.
const Pattern rows = any();
const Pattern axes = any();
const Pattern sum = op("ReduceSum", {rows, axes}, [](const Node& node) {
  return node.attributes.get_int("keepdims", 1) == 0;
});

/// So few rows that a thread may sum a column on its way.
bool sums_few_rows(const Match& m) {
  constexpr std::int64_t kFew = 256;
  const Tensor summed = constant_of(m[axes].value());
  const Shape shape = m[rows].shape();
  if (!summed.defined() || summed.size() != 1 || shape.rank() != 2 || shape[0] > kFew) return false;
  const std::int64_t axis = summed.values<std::int64_t>()[0];
  return (axis == 0 || axis == -2) && m[parameter].dtype() == m[rows].dtype() &&
         !origin(m[rows].value())->is_variable;
}

/// A sum of rows is the product of ones with them.
Results row_update(const Match& m) {
  Tensor ones = Tensor::empty(DType::f64, {1, m[rows].shape()[0]});
  std::ranges::fill(ones.values<double>(), 1.0);
  return with_product(m, m.builder().constant(ones.cast(m[rows].dtype())), m[rows].value(),
                      m.root().attributes);
}

Results row_sample(SampleNet& net, std::string_view name, int states) {
  std::vector<Expr> inputs{net.variable({5}), reduce_sum(net.input({7, 5}), {0}, false),
                           net.number(0.1), net.number(3, DType::i64)};
  for (int i = 0; i < states; ++i) inputs.push_back(net.variable({5}));
  return call_multi(name, kInternalDomain, inputs, states + 1);
}

/// An update of `states` states by x^T dy.
Results sample(SampleNet& net, std::string_view name, const Shape& shape, int states,
               const Attributes& settings, const Attributes& product) {
  const Expr gradient_of =
      call("Gemm", {net.input({4, shape[0]}), net.input({4, shape[1]})}, product);
  std::vector<Expr> inputs{net.variable(shape), gradient_of, net.number(0.1),
                           net.number(3, DType::i64)};
  for (int i = 0; i < states; ++i) inputs.push_back(net.variable(shape));
  return call_multi(name, kInternalDomain, inputs, states + 1, settings);
}

const std::vector<Rewrite> kRewrites{
    {.name = "product_update",
     .match = op_where(has_product_form, {parameter, once(gradient)}),
     .where =
         [](const Match& m) {
           return m[gradient].dtype() == m[parameter].dtype() && can_wait(m) && pays(m);
         },
     .to = product_update,
     .samples =
         {{"sgd",
           [](SampleNet& net) {
             return sample(net, "SgdUpdate", {3, 2}, 0, {}, {{"transA", 1}});
           }},
          {"half_a_gradient",
           [](SampleNet& net) {
             return sample(net, "SgdUpdate", {5, 4}, 0, {}, {{"transA", 1}, {"alpha", 0.5F}});
           }},
          {"adam",
           [](SampleNet& net) {
             return sample(net, "AdamUpdate", {512, 600}, 2, {{"beta1", 0.5F}}, {{"transA", 1}});
           }}}},
    {.name = "product_update_on_cards",
     .match = op_where(has_product_form, {parameter, once(gradient)}),
     .where =
         [](const Match& m) {
           return m[gradient].dtype() == m[parameter].dtype() && can_wait(m) && pays_on_cards(m);
         },
     .to = product_update,
     .samples = {{"large",
                  [](SampleNet& net) {
                    return sample(net, "SgdUpdate", {1024, 1024}, 0, {}, {{"transA", 1}});
                  }}}},
    {.name = "row_update",
     .match = op_where(has_product_form, {parameter, once(sum)}),
     .where = sums_few_rows,
     .to = row_update,
     .samples = {{"sgd", [](SampleNet& net) { return row_sample(net, "SgdUpdate", 1); }},
                 {"adam", [](SampleNet& net) { return row_sample(net, "AdamUpdate", 2); }}}},
};

/// The first ones are for the CPU.
constexpr std::size_t kOnCpu = 1;

}  // namespace product_update_fusion
}  // namespace

std::span<const Rewrite> fuse_product_updates_rewrites() {
  return product_update_fusion::kRewrites;
}

bool fuse_product_updates(Graph& graph, Device& device) {
  const std::span<const Rewrite> all = product_update_fusion::kRewrites;
  using product_update_fusion::kOnCpu;
  return rewrite(graph, device.kind() == DeviceKind::cpu ? all.first(kOnCpu) : all.subspan(kOnCpu));
}

}  // namespace graft::passes

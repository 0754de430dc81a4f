#include <algorithm>

#include "core/ops/alias.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// Empty op where the node has none.
const ProductForm& product_form_of(const Node& node) {
  return OpRegistry::instance().get(node).product_form;
}

/// The update runs after that of other parameters, so the product must not read one.
bool reads_variable(const Node& product) {
  return origin(product.input(0))->is_variable || origin(product.input(1))->is_variable;
}

/// A product that only adds to the parameter never costs more than one that is stored. Other
/// updates take the gradient piece by piece, which saves its way to memory and back, about a tenth
/// of both ops: where it fits no second cache, and has so few terms that a product in pieces costs
/// little more than a whole one.
bool pays(const Node& update, const Node& product) {
  const ProductForm& form = product_form_of(update);
  if (form.only_adds != nullptr && form.only_adds(update)) return true;
  constexpr std::size_t kSecondCacheBytes = std::size_t{1} << 20;
  constexpr std::size_t kOfOperands = 4;
  const std::size_t of_operands = product.input(0)->bytes() + product.input(1)->bytes();
  return product.output()->bytes() >= std::max(kSecondCacheBytes, kOfOperands * of_operands);
}

/// The product that makes the gradient for this update alone.
Node* gradient_product(const Node& update) {
  Node* const product = update.input(1)->producer();
  const bool fits = product != nullptr && product->is("Gemm") && product->input(2) == nullptr &&
                    product->output()->dtype() == update.input(0)->dtype() &&
                    only_reader(update.input(1)) == &update && !reads_variable(*product) &&
                    pays(update, *product);
  return fits ? product : nullptr;
}

/// The settings of both.
Attributes joined_settings(const Node& update, const Node& product) {
  Attributes settings = update.attributes;
  for (const Attribute& one : product.attributes) {
    if (one.name == "transA" || one.name == "transB") settings.set(one);
  }
  const float alpha = product.attributes.get_float("alpha", 1.0F);
  if (alpha != 1.0F) settings.set({"scale", AttributeValue(alpha)});
  return settings;
}

void fuse(Graph& graph, Node* update, Node* product) {
  const std::string_view name = product_form_of(*update).op;
  const OpDef& def = *OpRegistry::instance().find(name, kInternalDomain);
  std::vector<Value*> inputs = update->inputs();
  inputs[1] = product->input(0);
  inputs.resize(def.inputs.size() - 1, nullptr);
  inputs.push_back(product->input(1));
  std::vector<std::string> outputs;
  for (int i = 0; i < update->output_count(); ++i) {
    const Value* const old = update->output(i);
    outputs.push_back(old == nullptr ? "" : graph.unique_name(old->name()));
  }
  Node* const fused =
      Builder(graph, update)
          .node(name, kInternalDomain, inputs, outputs, joined_settings(*update, *product));
  fused->set_name(update->name());
  for (int i = 0; i < update->output_count(); ++i) {
    if (fused->output(i) != nullptr) graph.replace_all_uses(update->output(i), fused->output(i));
  }
  graph.remove(update);
  graph.remove(product);
}

}  // namespace

bool fuse_product_updates(Graph& graph) {
  std::vector<Node*> updates;
  for (const auto& node : graph.nodes()) {
    if (!product_form_of(*node).op.empty()) updates.push_back(node.get());
  }
  bool changed = false;
  for (Node* const update : updates) {
    if (Node* const product = gradient_product(*update)) {
      fuse(graph, update, product);
      changed = true;
    }
  }
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes

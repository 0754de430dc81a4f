#include "core/ops/alias.h"
#include "core/ops/builder.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

bool is_plain_sgd(const Node& node) {
  return node.is("SgdUpdate", kInternalDomain) && node.input(4) == nullptr &&
         node.attributes.get_float("weight_decay", 0.0F) == 0.0F;
}

/// The update runs after that of other parameters, so the product must not read one.
bool reads_variable(const Node& product) {
  return origin(product.input(0))->is_variable || origin(product.input(1))->is_variable;
}

/// The product that makes the gradient for this update alone.
Node* gradient_product(const Node& update) {
  Node* const product = update.input(1)->producer();
  const bool fits = product != nullptr && product->is("Gemm") && product->input(2) == nullptr &&
                    product->output()->dtype() == update.input(0)->dtype() &&
                    only_reader(update.input(1)) == &update && !reads_variable(*product);
  return fits ? product : nullptr;
}

void fuse(Graph& graph, Node* update, Node* product) {
  Builder builder(graph, update);
  Attributes attributes;
  for (const char* name : {"transA", "transB", "alpha"}) {
    if (const Attribute* const found = product->attributes.find(name)) attributes.set(*found);
  }
  Node* const fused =
      builder.node("SgdProductUpdate", kInternalDomain,
                   {product->input(0), product->input(1), update->input(0), update->input(2)}, 1,
                   std::move(attributes));
  fused->set_name(update->name());
  graph.replace_all_uses(update->output(0), fused->output(0));
  graph.remove(update);
  graph.remove(product);
}

}  // namespace

bool fuse_product_updates(Graph& graph) {
  std::vector<Node*> updates;
  for (const auto& node : graph.nodes()) {
    if (is_plain_sgd(*node)) updates.push_back(node.get());
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

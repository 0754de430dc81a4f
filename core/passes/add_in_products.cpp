// A matrix product can add a vector or a matrix to its result while that is in registers, so an Add
// behind it need not go over memory: the biases of layers that exporters spell out, residual
// connections, and gradients that come from several readers. Start at `match`.
#include <cstddef>

#include "core/base/pointer_map.h"
#include "core/ops/alias.h"
#include "core/ops/builder.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

struct Match {
  Node* add;
  Node* product;
  Value* addend;
};

/// A product of rows with one matrix, which nothing is added to yet.
bool is_bare_product(const Node& node) {
  if (node.is("Gemm")) return node.input(2) == nullptr;
  if (!node.is("MatMul")) return false;
  const std::optional<Shape> a = shape_of(node.input(0));
  const std::optional<Shape> b = shape_of(node.input(1));
  return a && b && a->rank() > 1 && b->rank() == 2;
}

/// The product that `value` shows, itself or through views, if nothing else reads what it makes.
Node* product_behind(const Value* value) {
  while (only_reader(value) != nullptr && value->producer() != nullptr) {
    Node* const node = value->producer();
    if (is_bare_product(*node)) return node;
    if (!is_view(*node)) return nullptr;
    value = node->input(0);
  }
  return nullptr;
}

/// 1 for a scalar.
std::int64_t last_dim(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

/// A number for each column of the product, the same for all rows.
bool is_row(const Shape& addend, const Shape& sum, const Shape& product) {
  const std::int64_t columns = last_dim(product);
  return last_dim(sum) == columns && last_dim(addend) == columns && addend.size() == columns;
}

/// Where nodes stand, and which of them update a variable.
class Places {
 public:
  explicit Places(const Graph& graph) {
    int updates = 0;
    for (const auto& node : graph.nodes()) {
      updates += updates_state(*node) ? 1 : 0;
      places_.try_emplace(node.get(), {places_.size(), updates});
    }
  }

  bool is_later(const Node* a, const Node* b) const {
    return places_.at(a).index > places_.at(b).index;
  }
  /// Whether a variable changes between the two.
  bool are_apart(const Node* a, const Node* b) const {
    return places_.at(a).updates != places_.at(b).updates;
  }

 private:
  struct Place {
    std::size_t index;
    int updates;
  };
  PointerMap<Node, Place> places_;
};

/// Of two products the later one adds: its operands are there anyway.
std::optional<Match> match(Node& add, const Places& places) {
  const std::optional<Shape> sum = shape_of(add.output());
  if (!add.is("Add") || !sum || sum->size() == 0) return std::nullopt;
  const DType dtype = add.output()->dtype();
  if (dtype != DType::f32 && dtype != DType::f64) return std::nullopt;
  std::optional<Match> found;
  for (const int i : {0, 1}) {
    Node* const product = product_behind(add.input(i));
    Value* const addend = add.input(1 - i);
    const std::optional<Shape> shape = shape_of(addend);
    if (product == nullptr || !shape || places.are_apart(product, &add)) continue;
    const Shape& result = product->output()->known_shape();
    const bool fits = product->output()->dtype() == dtype &&  // a view may read bits anew
                      result.size() == sum->size() && add.input(i)->known_shape() == *sum &&
                      (*shape == *sum || is_row(*shape, *sum, result));
    if (fits && (!found || places.is_later(product, found->product))) {
      found = Match{&add, product, addend};
    }
  }
  return found;
}

void fuse(Graph& graph, const Match& match) {
  Builder builder(graph, match.add);
  const Expr a = builder.expr(match.product->input(0));
  const Expr b = builder.expr(match.product->input(1));
  const Expr addend = builder.expr(match.addend);
  const Shape& product = match.product->output()->known_shape();
  const std::int64_t columns = last_dim(product);
  const Shape matrix{product.size() / columns, columns};
  const bool is_whole = addend.shape().size() == product.size();
  const Expr rows = a.rank() == 2 ? a : reshape(a, {matrix[0], last_dim(a.shape())});
  Attributes attributes = match.product->attributes;
  attributes.erase("beta");  // without C it may be anything
  const Expr y = call("Gemm", {rows, b, reshape(addend, is_whole ? matrix : Shape{columns})},
                      std::move(attributes));
  graph.replace_all_uses(match.add->output(),
                         reshape(y, match.add->output()->known_shape()).value());
}

}  // namespace

bool add_in_products(Graph& graph) {
  bool changed = false;
  const Places places(graph);
  std::vector<Node*> adds;
  for (const auto& node : graph.nodes()) {
    if (node->is("Add")) adds.push_back(node.get());
  }
  for (Node* const add : adds) {
    if (const std::optional<Match> found = match(*add, places)) {
      fuse(graph, *found);
      changed = true;
    }
  }
  if (changed) eliminate_dead(graph);
  verify_in_debug(graph);
  return changed;
}

}  // namespace graft::passes

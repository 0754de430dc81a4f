// A matrix product can add a vector or a matrix to its result while that is in registers, so an Add
// behind it need not go over memory: the biases of layers that exporters spell out, residual
// connections, and gradients that come from several readers.
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace product_addition {

/// A product of rows with one matrix, which nothing is added to yet.
bool is_bare_product(const Node& node) {
  if (node.is("Gemm")) return node.input(2) == nullptr;
  if (!node.is("MatMul")) return false;
  const std::optional<Shape> a = shape_of(node.input(0));
  const std::optional<Shape> b = shape_of(node.input(1));
  return a && b && a->rank() > 1 && b->rank() == 2;
}

const Pattern a = any();
const Pattern b = any();
const Pattern product = op_where(is_bare_product, {a, b});
const Pattern shown = through_views(product);
const Pattern addend = any();

/// 1 for a scalar.
std::int64_t last_dim(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
}

/// A number for each column of the product, the same for all rows.
bool is_row(const Shape& added, const Shape& sum, const Shape& rows) {
  const std::int64_t columns = last_dim(rows);
  return last_dim(sum) == columns && last_dim(added) == columns && added.size() == columns;
}

/// Whether the product that `value` shows can add `other`.
bool can_add(const Match& m, const Node& made_by, const Value& value, const Value& other) {
  const Shape sum = m.result()->known_shape();
  const std::optional<Shape> added = shape_of(&other);
  const Shape rows = made_by.output()->known_shape();
  if (!added || m.order().are_apart(made_by, m.root()) ||
      made_by.output()->dtype() != m.result()->dtype() ||  // a view may read bits anew
      rows.size() != sum.size() || value.known_shape() != sum) {
    return false;
  }
  const bool takes_matrices = m.result()->dtype() != DType::bf16;  // the sum would be rounded twice
  return is_row(*added, sum, rows) || (takes_matrices && *added == sum);
}

bool has_sums(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
}

/// Of two products the later one adds: its operands are there anyway.
bool is_best(const Match& m) {
  const Node& found = m.node(product);
  Value& other = *m[addend].value();
  const Value& value = *m.root().input(m.root().input(0) == &other ? 1 : 0);
  if (!has_sums(m.result()->dtype()) || m.result()->known_shape().size() == 0 ||
      !can_add(m, found, value, other)) {
    return false;
  }
  Match second(m.graph());
  return !find_match(shown, other, nullptr, second) ||
         !m.order().is_later(second.node(product), found) ||
         !can_add(m, second.node(product), other, value);
}

Results sum_in_product(const Match& m) {
  const Node& node = m.node(product);
  const Shape rows = node.output()->known_shape();
  const std::int64_t columns = last_dim(rows);
  const Shape matrix{rows.size() / columns, columns};
  const bool is_whole = m[addend].shape().size() == rows.size();
  const Expr left = m[a].rank() == 2 ? m[a] : reshape(m[a], {matrix[0], last_dim(m[a].shape())});
  Attributes attributes = node.attributes;
  attributes.erase("beta");  // without C it may be anything
  const Expr y = call("Gemm", {left, m[b], reshape(m[addend], is_whole ? matrix : Shape{columns})},
                      std::move(attributes));
  return reshape(y, m.result()->known_shape());
}

const std::vector<Rewrite> kRewrites{
    {.name = "add_in_product",
     .match = shown + addend,
     .where = is_best,
     .to = sum_in_product,
     .samples =
         {{"bias",
           [](SampleNet& net) {
             return net.input({5}) + matmul(net.input({4, 3}), net.input({3, 5}));
           }},
          {"residual",
           [](SampleNet& net) {
             const Expr x = net.input({2, 4, 3});
             return matmul(x, net.input({3, 3})) + x;
           }},
          {"behind_a_view",
           [](SampleNet& net) {
             const Expr y = call("Gemm", {net.input({6, 3}), net.input({5, 3})},
                                 {{"transB", 1}, {"alpha", 0.5F}, {"beta", 0.25F}});
             return reshape(y, {2, 3, 5}) + net.input({2, 3, 5});
           }},
          {"two_products",
           [](SampleNet& net) {
             const Expr y = matmul(net.input({4, 3}), net.input({3, 5}));
             const Expr z = call("Gemm", {net.input({2, 4}), net.input({2, 5})}, {{"transA", 1}});
             return y + z;
           }}}},
};

}  // namespace product_addition
}  // namespace

std::span<const Rewrite> add_in_products_rewrites() {
  return product_addition::kRewrites;
}

bool add_in_products(Graph& graph) {
  return rewrite(graph, product_addition::kRewrites);
}

}  // namespace graft::passes

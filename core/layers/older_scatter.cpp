// ScatterElements and ScatterND that add up, as gradients of pools and lookups do: before opset 16
// they could only overwrite.
#include <algorithm>
#include <numeric>

#include "core/layers/older_forms.h"
#include "core/ops/cost.h"
#include "core/ops/table_limit.h"

namespace graft::edit {
namespace {

using Ints = std::vector<std::int64_t>;

/// Windows that overlap more would make too many nodes.
constexpr std::int64_t kMostGroups = 64;

/// `data` [n], to which updates [k] are added at indices [k] of which no two are the same.
Expr add_at(const Expr& data, const Expr& indices, const Expr& updates) {
  const Expr before = call("GatherElements", {data, indices}, {{"axis", 0}});
  return call("ScatterElements", {data, indices, before + updates}, {{"axis", 0}});
}

/// The MaxPool that gave these indices, in its order; null if another node did.
const Node* pool_of(const Value& indices) {
  const Node* const flat = indices.producer();
  if (flat == nullptr || !flat->is("Reshape")) return nullptr;
  const Node* const pool = flat->input(0)->producer();
  const bool is_pool = pool != nullptr && pool->is("MaxPool") && pool->output(1) == flat->input(0);
  return is_pool ? pool : nullptr;
}

/// Along each spatial axis: each how many-th window shares no element with the next such.
Ints apart(const Node& pool, const Shape& y) {
  const Ints kernel = pool.attributes.get_ints("kernel_shape");
  const Ints strides = pool.attributes.get_ints("strides", Ints(kernel.size(), 1));
  const Ints dilations = pool.attributes.get_ints("dilations", Ints(kernel.size(), 1));
  Ints result;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
    const std::int64_t each = (extent + strides[i] - 1) / strides[i];
    result.push_back(std::max<std::int64_t>(1, std::min(each, y[2 + static_cast<int>(i)])));
  }
  return result;
}

/// x [N,C,...] from `starts` on, in those steps, in a row.
Expr taken(Builder& builder, const Expr& x, const Ints& starts, const Ints& steps) {
  Ints axes(steps.size());
  std::iota(axes.begin(), axes.end(), 2);
  const Shape shape = x.shape();
  const Ints ends(shape.begin() + 2, shape.dims().end());
  const Expr part = call("Slice", {x, constant_ints(builder, starts), constant_ints(builder, ends),
                                   constant_ints(builder, axes), constant_ints(builder, steps)});
  return reshape(part, Shape{part.shape().size()});
}

/// Windows are added in groups that do not overlap, so that no group has an index twice.
std::vector<Expr> add_to_windows(const OlderForm& form, const Node& pool) {
  const Shape y = pool.output(1)->known_shape();
  const Ints steps = apart(pool, y);
  const std::int64_t groups =
      std::accumulate(steps.begin(), steps.end(), std::int64_t{1}, std::multiplies<>());
  if (groups == 1) return {add_at(form.input(0), form.input(1), form.input(2))};
  if (groups > kMostGroups) {
    form.refuse(text("reduction = add, and windows of ", pool.label(), " overlap so much that ",
                     groups, " groups of them would be wanted, at most ", kMostGroups));
  }
  const Expr indices = reshape(form.input(1), y);
  const Expr updates = reshape(form.input(2), y);
  Expr sum = form.input(0);
  for (std::int64_t group = 0; group < groups; ++group) {
    Ints starts(steps.size());
    std::int64_t rest = group;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      starts[i] = rest % steps[i];
      rest /= steps[i];
    }
    sum = add_at(sum, taken(form.builder, indices, starts, steps),
                 taken(form.builder, updates, starts, steps));
  }
  return {sum};
}

/// Indices [count, depth] of places in a tensor whose first axes are `dims`, as one number each.
Expr places_of(Builder& builder, const Expr& indices, const Ints& dims) {
  Ints strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  const Expr from_the_start = where(less(indices, constant_ints(builder, {0})),
                                    indices + constant_ints(builder, dims), indices);
  return reduce_sum(from_the_start * constant_ints(builder, strides), {1}, false);
}

/// Each place takes the product of a row of zeros and ones, which says whose index it is, and the
/// updates.
std::vector<Expr> add_by_product(const OlderForm& form) {
  const Expr data = form.input(0);
  const Shape shape = data.shape();
  const Shape indices = form.input(1).shape();
  const std::int64_t depth = indices.rank() == 0 ? 0 : indices[indices.rank() - 1];
  if (!is_float(data.dtype()) || depth == 0) form.refuse("reduction = add of such elements");
  const Ints dims(shape.begin(), shape.begin() + depth);
  const std::int64_t places = shape.size(0, static_cast<int>(depth));
  const std::int64_t row = shape.size(static_cast<int>(depth), shape.rank());
  const std::int64_t count = indices.size() / depth;
  require_small_table(form.node, places);
  Ints numbers(static_cast<std::size_t>(places));
  std::iota(numbers.begin(), numbers.end(), 0);
  const Expr all =
      form.builder.expr(form.builder.constant(Tensor::from(Shape{places, 1}, numbers)));
  const Expr wanted = places_of(form.builder, reshape(form.input(1), Shape{count, depth}), dims);
  const Expr is_there = cast(equal(all, reshape(wanted, Shape{1, count})), data.dtype());
  const Expr sums = matmul(is_there, reshape(form.input(2), Shape{count, row}));
  return {data + reshape(sums, shape)};
}

}  // namespace

std::vector<Expr> scatter_without_reduction(const OlderForm& form) {
  const Node& node = form.node;
  if (node.attributes.get_string("reduction", "none") == "add" && has_known_shapes(node)) {
    if (node.is("ScatterND")) return add_by_product(form);
    const Node* const pool = pool_of(*node.input(1));
    if (pool != nullptr && form.input(0).rank() == 1) return add_to_windows(form, *pool);
  }
  form.drop_default("reduction", "none");
  return {};
}

}  // namespace graft::edit

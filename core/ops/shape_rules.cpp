#include "core/ops/shape_rules.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/limits.h"

namespace graft {
namespace {

/// The first element outside [-size, size). Goes over the elements where they lie: nodes may read
/// one large table, and each is inferred again and again.
template <class Index>
std::optional<std::int64_t> first_outside(const Tensor& tensor, std::int64_t size) {
  const std::span<const Index> indices = tensor.values<Index>();
  Index least = 0;
  Index most = -1;
  for (const Index index : indices) {
    least = std::min(least, index);
    most = std::max(most, index);
  }
  if (least >= -size && most < size) return std::nullopt;
  return *std::ranges::find_if(indices, [&](Index i) { return i < -size || i >= size; });
}

}  // namespace

Dim product(const SymShape& shape, int first, int last) {
  std::int64_t known = 1;
  int unknown_count = 0;
  Dim unknown;
  for (int axis = first; axis < last; ++axis) {
    if (shape[axis].is_known() && shape[axis].value() == 0) return 0;
  }
  for (int axis = first; axis < last; ++axis) {
    if (shape[axis].is_known()) {
      known = checked_multiply(known, shape[axis].value());
    } else {
      ++unknown_count;
      unknown = shape[axis];
    }
  }
  if (unknown_count == 0) return known;
  return unknown_count == 1 && known == 1 ? unknown : Dim();
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    fail(ErrorKind::shape, "the sum of ", a, " and ", b, " overflows 64 bits");
  }
  return sum;
}

SymShape unknown_dims(std::int64_t rank) {
  if (rank > limits().rank) {
    fail(ErrorKind::unsupported, "a result has rank ", rank, "; ",
         limit_text("rank", limits().rank));
  }
  return SymShape(std::vector<Dim>(static_cast<std::size_t>(rank)));
}

std::optional<std::int64_t> list_length(const InferContext& context, int index) {
  const SymShape* const shape = context.shape(index);
  if (shape == nullptr) return std::nullopt;
  context.require_rank(index, 0, 1);
  if (shape->rank() == 0) return 1;  // some exporters write a list of one so
  if (!(*shape)[0].is_known()) return std::nullopt;
  return (*shape)[0].value();
}

std::optional<std::vector<std::int64_t>> known_ints(const InferContext& context, int index,
                                                    std::string_view attribute) {
  if (context.has_input(index)) {
    list_length(context, index);
    return context.constant_ints(index);
  }
  if (!context.attributes().has(attribute)) return std::nullopt;
  return context.attributes().get_ints(attribute);
}

std::optional<std::int64_t> known_size(const InferContext& context, int index, std::int64_t least,
                                       std::int64_t most) {
  require_index_type(context, index);
  const auto values = context.constant_ints(index);
  if (!values) return std::nullopt;
  if (values->size() != 1 || values->front() < least || values->front() > most) {
    context.fail(ErrorKind::shape, "input '", context.input(index).name(),
                 "' must be one number from ", least, " to ", most);
  }
  return values->front();
}

bool has_ints(const InferContext& context, int index, std::string_view attribute) {
  return context.has_input(index) || context.attributes().has(attribute);
}

std::vector<int> unique_axes(const std::vector<std::int64_t>& axes, int rank,
                             std::string_view who) {
  std::vector<int> result;
  std::vector<bool> is_given(static_cast<std::size_t>(rank));
  for (const std::int64_t axis : axes) {
    const int found = normalize_axis(axis, rank, who);
    const auto at = static_cast<std::size_t>(found);
    if (is_given[at]) fail(ErrorKind::shape, who, ": axis ", found, " is given twice");
    is_given[at] = true;
    result.push_back(found);
  }
  return result;
}

void require_dim(const InferContext& context, int input, int axis, const Dim& wanted) {
  const SymShape* const shape = context.shape(input);
  if (shape == nullptr) return;
  const Dim& found = (*shape)[axis];
  if (!found.is_known() || !wanted.is_known() || found.value() == wanted.value()) return;
  context.fail(ErrorKind::shape, "input '", context.input(input).name(), "' is ", *shape,
               ", wanted ", wanted, " along axis ", axis);
}

void check_indices(const InferContext& context, int indices, const Dim& dim) {
  const SymShape* const shape = context.shape(indices);
  if (!dim.is_known() || shape == nullptr) return;
  const std::optional<Shape> known = shape->known();
  if (dim.value() == 0 && known && known->size() > 0) {
    context.fail(ErrorKind::shape, "indices ", *known, " into an axis without elements");
  }
  const Tensor tensor = context.constant(indices);
  if (!tensor.defined()) return;
  const std::optional<std::int64_t> outside =
      tensor.dtype() == DType::i32 ? first_outside<std::int32_t>(tensor.to(cpu()), dim.value())
                                   : first_outside<std::int64_t>(tensor.to(cpu()), dim.value());
  if (outside) {
    context.fail(ErrorKind::shape, "index ", *outside, " out of range for a dim of ", dim);
  }
}

void require_index_type(const InferContext& context, int index) {
  const DType dtype = context.dtype(index);
  if (dtype == DType::undefined || dtype == DType::i32 || dtype == DType::i64) return;
  context.fail(ErrorKind::type, "input '", context.input(index).name(), "' is ",
               context.input(index).type(), ", wanted i64 or i32 elements");
}

void check_reduction(const InferContext& context) {
  const std::string name = context.attributes().get_string("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"}) {
    if (name == known) return;
  }
  context.fail(ErrorKind::model, "reduction '", name, "' is none of none, add, mul, max, min");
}

void ints_attribute_to_input(Node& node, Builder& builder, std::string_view attribute, int index) {
  if (!node.attributes.has(attribute)) return;
  const std::vector<std::int64_t> values = node.attributes.get_ints(attribute);
  node.attributes.erase(attribute);
  node.set_input(index, constant_ints(builder, values).value());
}

}  // namespace graft

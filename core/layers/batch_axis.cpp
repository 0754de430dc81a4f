#include "core/layers/batch_axis.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "core/base/at.h"

namespace graft::edit {

std::optional<BatchAxis> find_batch_axis(const Shape& at_small, const Shape& at_large,
                                         std::int64_t small, std::int64_t large) {
  if (at_small.rank() != at_large.rank()) return std::nullopt;
  std::optional<BatchAxis> found;
  for (int axis = 0; axis < at_small.rank(); ++axis) {
    if (at_small[axis] == at_large[axis]) continue;
    if (found || at_small[axis] % small != 0 || at_small[axis] / small * large != at_large[axis]) {
      return std::nullopt;
    }
    found = BatchAxis{.axis = axis};
  }
  return found;
}

namespace {

/// Whether the `behind` elements that follow one sample in memory stand at the end of `to`: as they
/// do behind `axis` in `from`, or as one axis.
bool ends_in_rows(const Shape& from, int axis, std::int64_t behind, const Shape& to) {
  const int count = from.rank() - axis - 1;
  if (count == 0 || to.rank() == 0) return false;
  return to[to.rank() - 1] == behind ||
         (count <= to.rank() && std::equal(from.end() - count, from.end(), to.end() - count));
}

}  // namespace

/// In memory, x is [before, batch, behind], whatever its shape says.
std::optional<BatchAxis> reshaped_batch_axis(const Shape& from, const BatchAxis& axis,
                                             const Shape& to, std::int64_t batch,
                                             const std::vector<std::int64_t>& target) {
  if (from.size() == 0) return std::nullopt;
  const std::int64_t before = from.size(0, axis.axis) * axis.outer;
  const std::int64_t behind = from.size() / (before * batch);
  std::optional<BatchAxis> best;
  const bool keeps_rows = ends_in_rows(from, axis.axis, behind, to);
  std::tuple<bool, bool, bool, bool> best_rank;
  for (int place = 0; place < to.rank(); ++place) {
    const std::int64_t left = to.size(0, place);
    const std::int64_t right = to.size(place + 1, to.rank());
    if (left == 0 || right == 0 || before % left != 0 || behind % right != 0) continue;
    const std::int64_t outer = before / left;
    const std::int64_t inner = behind / right;
    if (to[place] != outer * batch * inner) continue;
    const auto index = static_cast<std::size_t>(place);
    const bool is_open = index < target.size() && target[index] == -1;
    const bool is_usual = keeps_rows ? inner == 1 : outer == 1;
    const std::tuple rank{outer * inner != 1, !is_open, !is_usual, place != axis.axis};
    if (best && best_rank <= rank) continue;
    best = BatchAxis{place, outer};
    best_rank = rank;
  }
  return best;
}

Tensor one_of_equal(const Tensor& tensor, int axis) {
  constexpr int kByte = 8;
  if (bits_of(tensor.dtype()) < kByte) return {};
  const Shape& shape = tensor.shape();
  const std::size_t part = bytes_of(tensor.dtype(), shape.size(axis + 1, shape.rank()));
  std::vector<std::int64_t> dims = shape.dims();
  at(dims, axis) = 1;
  const Tensor one = Tensor::empty(tensor.dtype(), Shape(std::move(dims)));
  const auto* from = static_cast<const std::byte*>(tensor.data());
  auto* to = static_cast<std::byte*>(one.data());
  for (std::int64_t i = 0; i < shape.size(0, axis); ++i, to += part) {
    std::memcpy(to, from, part);
    for (std::int64_t j = 0; j < shape[axis]; ++j, from += part) {
      if (std::memcmp(to, from, part) != 0) return {};
    }
  }
  return one;
}

}  // namespace graft::edit

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "core/base/at.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/width.h"
#include "core/ops/move/nonzero.h"
#include "core/ops/registry.h"
#include "core/tensor/slices.h"

namespace graft {
namespace {

std::vector<std::int64_t> positions_of_nonzeros(const Tensor& x) {
  std::vector<std::int64_t> positions;
  const bool ok = visit_kernel_dtype(Signless<AllTypes>{}, x.dtype(), [&]<class T>() {
    const std::span values(static_cast<const T*>(x.data()), static_cast<std::size_t>(x.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      bool is_zero = false;
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        is_zero = static_cast<float>(values[i]) == 0.0F;
      } else {
        is_zero = values[i] == T{};
      }
      if (!is_zero) positions.push_back(static_cast<std::int64_t>(i));
    }
  });
  if (!ok) fail(ErrorKind::type, "nonzero: cannot read ", describe(x));
  return positions;
}

/// y [rank, count]: one row of indices an axis.
std::vector<Datum> nonzero(const DynamicCall& call) {
  const Tensor& x = call.tensor(0);
  const std::vector<std::int64_t> positions = positions_of_nonzeros(x);
  const auto count = static_cast<std::int64_t>(positions.size());
  std::vector<std::int64_t> y;
  const std::vector<std::int64_t> strides = x.shape().strides();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t stride = at(strides, axis);
    for (const std::int64_t at : positions) y.push_back(at / stride % x.shape()[axis]);
  }
  return {Tensor::from({x.rank(), count}, y)};
}

/// The entries `indices` (ascending or not) of an axis; neighbours are copied together.
Tensor take(const Tensor& x, int axis, const std::vector<std::int64_t>& indices) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < indices.size();) {
    std::size_t end = i + 1;
    while (end < indices.size() && indices[end] == indices[end - 1] + 1) ++end;
    parts.push_back(narrow(x, axis, indices[i], static_cast<std::int64_t>(end - i)));
    i = end;
  }
  return parts.empty() ? narrow(x, axis, 0, 0) : concat(parts, axis);
}

/// The input and the axis that the attribute chooses: without one, all elements in a row.
std::pair<Tensor, int> along_axis(const DynamicCall& call) {
  const Tensor& x = call.tensor(0);
  if (!call.attributes().has("axis")) return {x.reshaped({x.size()}), 0};
  return {x, normalize_axis(call.attributes().get_int("axis", 0), x.rank(), call.node().label())};
}

std::vector<Datum> compress(const DynamicCall& call) {
  const auto [x, axis] = along_axis(call);
  return {take(x, axis, true_indices(call.tensor(1), x.shape()[axis], call.node().label()))};
}

/// Orders numbers, NaN last, and strings.
template <class T>
bool is_less(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return is_less(static_cast<float>(a), static_cast<float>(b));
  } else if constexpr (std::is_floating_point_v<T>) {
    return a < b || (a == a && b != b);
  } else {
    return a < b;
  }
}

/// Compares two entries of an axis: negative, 0 or positive.
using CompareEntries = std::function<int(std::int64_t a, std::int64_t b)>;

/// Of the row-major tensor [outer, count, inner], element by element.
template <class T>
CompareEntries compare_entries(const T* data, std::int64_t outer, std::int64_t count,
                               std::int64_t inner) {
  return [=](std::int64_t a, std::int64_t b) {
    for (std::int64_t o = 0; o < outer; ++o) {
      const T* const left = data + (o * count + a) * inner;
      const T* const right = data + (o * count + b) * inner;
      for (std::int64_t i = 0; i < inner; ++i) {
        if (is_less(left[i], right[i])) return -1;
        if (is_less(right[i], left[i])) return 1;
      }
    }
    return 0;
  };
}

struct Groups {
  std::vector<std::int64_t> first;    // the first entry of each group
  std::vector<std::int64_t> inverse;  // the group of each entry
  std::vector<std::int64_t> counts;
};

/// Groups equal entries, in ascending order or in the order of their first entries.
Groups group(std::int64_t count, const CompareEntries& compare, bool sorted) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::stable_sort(order, [&](auto a, auto b) { return compare(a, b) < 0; });
  std::vector<std::vector<std::int64_t>> members;
  for (const std::int64_t entry : order) {
    const bool is_new = members.empty() || compare(members.back().front(), entry) != 0;
    if (is_new) members.emplace_back();
    members.back().push_back(entry);
  }
  if (!sorted) {
    std::ranges::sort(members, {}, [](const auto& group) { return group.front(); });
  }
  Groups groups;
  groups.inverse.resize(order.size());
  for (const auto& one : members) {
    for (const std::int64_t entry : one) {
      at(groups.inverse, entry) = static_cast<std::int64_t>(groups.first.size());
    }
    groups.first.push_back(one.front());
    groups.counts.push_back(static_cast<std::int64_t>(one.size()));
  }
  return groups;
}

std::vector<Datum> unique(const DynamicCall& call) {
  const auto [x, axis] = along_axis(call);
  const bool sorted = call.attributes().get_int("sorted", 1) != 0;
  // Of entries without elements there may be any number.
  const std::int64_t outer = x.size() == 0 ? 0 : x.shape().size(0, axis);
  const std::int64_t inner = x.shape().size(axis + 1, x.rank());
  check_entries(x, axis);
  const std::int64_t count = x.shape()[axis];
  CompareEntries compare;
  if (x.dtype() == DType::string) {
    compare = compare_entries(x.strings().data(), outer, count, inner);
  } else {
    visit_kernel_dtype(AllTypes{}, x.dtype(), [&, &x = x]<class T>() {
      compare = compare_entries(x.values<const T>().data(), outer, count, inner);
    });
  }
  if (!compare) call.fail(ErrorKind::type, "cannot compare elements of ", x);
  const Groups groups = group(count, compare, sorted);
  const auto list = [](const std::vector<std::int64_t>& values) {
    return Tensor::from({static_cast<std::int64_t>(values.size())}, values);
  };
  return {take(x, axis, groups.first), list(groups.first), list(groups.inverse),
          list(groups.counts)};
}

}  // namespace

void register_nonzero_cpu(KernelRegistry& registry) {
  registry.add({.op = "NonZero", .run = nonzero});
  registry.add({.op = "Compress", .run = compress});
  registry.add({.op = "Unique", .run = unique});
}

}  // namespace graft

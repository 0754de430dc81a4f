#include <algorithm>

#include "core/base/machine.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/move/pad.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Pads with a value: fills, then copies what of the data stays.
template <class T>
Kernel constant_kernel(const KernelRequest& request, const PadAmounts& amounts) {
  const Shape& x = request.shape();
  const Shape& y = request.output().shape;
  const std::vector<std::int64_t> x_strides = x.strides();
  const std::vector<std::int64_t> y_strides = y.strides();
  std::vector<std::int64_t> kept;
  std::int64_t from = 0;
  std::int64_t to = 0;
  for (std::size_t i = 0; i < x_strides.size(); ++i) {
    const std::int64_t before = amounts.before[i];
    const std::int64_t after = amounts.after[i];
    kept.push_back(std::max<std::int64_t>(0, x[static_cast<int>(i)] +
                                                 std::min<std::int64_t>(before, 0) +
                                                 std::min<std::int64_t>(after, 0)));
    from += std::max<std::int64_t>(-before, 0) * x_strides[i];
    to += std::max<std::int64_t>(before, 0) * y_strides[i];
  }
  const StridedCopy copy(kept, y_strides, x_strides);
  const bool fills = Shape(kept).size() != y.size();
  const bool has_value = request.has_input(2);
  return [copy, from, to, fills, has_value, size = y.size()](const KernelArgs& args) {
    if (fills) fill_elements(args.output<T>(), size, has_value ? *args.input<T>(2) : T{});
    copy.run(args.output<T>() + to, args.input<T>(0) + from);
  };
}

/// Which element of an axis of `dim` > 0 stands at `at`, counted from the first unpadded one.
std::int64_t source_position(PadMode mode, std::int64_t at, std::int64_t dim) {
  if (mode == PadMode::edge) return std::clamp<std::int64_t>(at, 0, dim - 1);
  const std::int64_t period =
      mode == PadMode::wrap ? dim : std::max<std::int64_t>(2 * (dim - 1), 1);
  const std::int64_t phase = (at % period + period) % period;
  return phase < dim ? phase : period - phase;
}

/// For each element of a padded tensor, the element of the data that it repeats.
class PadMap {
 public:
  PadMap(PadMode mode, const Shape& data, const Shape& whole,
         const std::vector<std::int64_t>& before) {
    const std::vector<std::int64_t> strides = data.strides();
    bool leads = true;
    for (int axis = 0; axis < data.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis);
      std::vector<std::int64_t>& table = offsets_.emplace_back();
      for (std::int64_t at = 0; at < whole[axis]; ++at) {
        table.push_back(source_position(mode, at - before[i], data[axis]) * strides[i]);
      }
      const bool is_last = axis == data.rank() - 1;
      leads = leads && !is_last && before[i] == 0 && whole[axis] == data[axis];
      if (leads) leading_ *= data[axis];
      if (!is_last) rows_ *= whole[axis];
    }
    if (offsets_.empty()) offsets_.push_back({0});
  }

  /// Whether the tables, one entry a position of each axis, stay small. Their size comes from pads
  /// that a file may set to anything.
  static bool fits(const Shape& whole) {
    constexpr std::int64_t kMostPositions = std::int64_t{1} << 24;
    return std::all_of(whole.begin(), whole.end(),
                       [](std::int64_t dim) { return dim <= kMostPositions; });
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t width() const { return static_cast<std::int64_t>(offsets_.back().size()); }
  /// Groups of rows that share no element of the data.
  std::int64_t leading() const { return leading_; }

  /// Calls visit(padded, data) with the offsets of each element of rows [first, last).
  template <class Visit>
  void for_rows(std::int64_t first, std::int64_t last, Visit&& visit) const {
    const std::vector<std::int64_t>& inner = offsets_.back();
    for (std::int64_t row = first; row < last; ++row) {
      std::int64_t rest = row;
      std::int64_t base = 0;
      for (std::size_t axis = offsets_.size() - 1; axis-- > 0;) {
        const auto dim = static_cast<std::int64_t>(offsets_[axis].size());
        base += offsets_[axis][static_cast<std::size_t>(rest % dim)];
        rest /= dim;
      }
      std::int64_t at = row * width();
      for (const std::int64_t offset : inner) visit(at++, base + offset);
    }
  }

 private:
  std::vector<std::vector<std::int64_t>> offsets_;
  std::int64_t rows_ = 1;
  std::int64_t leading_ = 1;
};

Kernel make_pad(KernelRequest& request) {
  const Shape& x = request.shape();
  const Shape& y = request.output().shape;
  if (y.size() == 0) return [](const KernelArgs&) {};
  const InferContext context(const_cast<Node&>(request.node()));  // reads only
  const auto amounts = pad_amounts(context, x.rank());
  if (!amounts) return {};
  const PadMode mode = pad_mode(request.node());
  if (mode != PadMode::constant && !PadMap::fits(y)) return {};
  Kernel kernel;
  visit_width(request.dtype(), [&]<class T>() {
    if (mode == PadMode::constant) {
      kernel = constant_kernel<T>(request, *amounts);
      return;
    }
    kernel = [map = PadMap(mode, x, y, amounts->before)](const KernelArgs& args) {
      parallel_for(map.rows(), kElementwiseGrain / map.width() + 1,
                   [&](std::int64_t first, std::int64_t last) {
                     map.for_rows(first, last, [&](std::int64_t padded, std::int64_t data) {
                       args.output<T>()[padded] = args.input<T>(0)[data];
                     });
                   });
    };
  });
  return kernel;
}

Kernel make_pad_grad(KernelRequest& request) {
  const Shape& dy = request.shape();
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  if (!PadMap::fits(dy)) return {};
  const PadMap map(pad_mode(request.node()), dx, dy, request.attributes().get_ints("before"));
  const std::int64_t rows = dy.size() == 0 ? 0 : map.rows() / map.leading();
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = [map, rows, size = dx.size()](const KernelArgs& args) {
      fill_elements(args.output<T>(), size, T{});
      const std::int64_t grain = kElementwiseGrain / (rows * map.width() + 1) + 1;
      parallel_for(map.leading(), grain, [&](std::int64_t first, std::int64_t last) {
        map.for_rows(first * rows, last * rows, [&](std::int64_t padded, std::int64_t data) {
          args.output<T>()[data] += args.input<T>(0)[padded];
        });
      });
    };
  });
  return kernel;
}

}  // namespace

void register_pad_cpu(KernelRegistry& registry) {
  registry.add({.op = "Pad", .name = "plain", .make = make_pad});
  registry.add(
      {.op = "PadGrad", .domain = kInternalDomain, .name = "plain", .make = make_pad_grad});
}

}  // namespace graft

// Resize goes axis by axis; only the last two, the rows and columns of images, go together, so that
// a row is used while it is in the cache. Start by looking at `ResizeStep` and `plan_steps`.
#include <algorithm>
#include <cstring>

#include "core/ops/image/resize.h"
#include "core/ops/image/resize_step.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/kernels/strided.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

struct AxisAndTable {
  int axis;
  ResizeTable table;
};

/// One step an axis, but one for the last two axes where both change. Axes that shrink come first.
template <class T>
std::vector<ResizeStep<T>> plan_steps(Shape shape, std::vector<AxisAndTable> axes) {
  const int rank = shape.rank();
  const auto grows = [](const AxisAndTable& one) { return one.table.output > one.table.input; };
  const auto is_at = [&](std::size_t i, int axis) { return axes[i].axis == axis; };
  std::optional<ResizeTable> columns;
  if (axes.size() >= 2 && is_at(axes.size() - 1, rank - 1) && is_at(axes.size() - 2, rank - 2)) {
    columns = std::move(axes.back().table);
    axes.pop_back();
  }
  std::stable_partition(axes.begin(), axes.end(),
                        [&](const AxisAndTable& one) { return !grows(one); });
  std::vector<ResizeStep<T>> steps;
  for (const auto& [axis, table] : axes) {
    std::vector<std::int64_t> dims = shape.dims();
    const std::int64_t planes = shape.size(0, axis);
    const bool is_last = axis == rank - 1;
    const bool has_columns = columns && axis == rank - 2;
    dims[static_cast<std::size_t>(axis)] = table.output;
    if (has_columns) dims.back() = columns->output;
    const Shape next(std::move(dims));  // refuses what would overflow in a step
    if (is_last) {
      steps.emplace_back(planes, std::nullopt, table, 1);
    } else if (has_columns) {
      steps.emplace_back(planes, table, columns, 1);
    } else {
      steps.emplace_back(planes, table, std::nullopt, shape.size(axis + 1, rank));
    }
    shape = next;
  }
  return steps;
}

/// Overwrites the outputs that lie outside of the input.
template <class T>
class Extrapolation {
 public:
  Extrapolation(const KernelRequest& request, const std::vector<AxisAndTable>& axes) {
    const Shape& y = request.output().shape;
    for (const auto& [axis, table] : axes) {
      if (table.outside.empty()) continue;
      slices_.push_back({y.size(0, axis), table.output, y.size(axis + 1, y.rank()), table.outside});
    }
    if (slices_.empty()) return;
    const float value = request.attributes().get_float("extrapolation_value", 0.0F);
    const Tensor element = Tensor::full(request.dtype(), Shape{}, value);
    std::memcpy(&value_, element.data(), sizeof(T));
  }

  void run(T* y) const {
    for (const Slices& one : slices_) {
      for (std::int64_t outer = 0; outer < one.outer; ++outer) {
        for (const std::int64_t at : one.outside) {
          std::fill_n(y + (outer * one.length + at) * one.inner, one.inner, value_);
        }
      }
    }
  }

 private:
  struct Slices {
    std::int64_t outer;
    std::int64_t length;
    std::int64_t inner;
    std::vector<std::int64_t> outside;
  };

  T value_{};
  std::vector<Slices> slices_;
};

/// Steps through two intermediate tensors by turns.
template <class T>
class StepChain {
 public:
  explicit StepChain(std::vector<ResizeStep<T>> steps) : steps_(std::move(steps)) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      scratch_ = std::max(scratch_, steps_[i].scratch_size());
      if (i + 1 < steps_.size()) between_ = std::max(between_, steps_[i].output_size());
    }
  }
  std::size_t workspace_bytes() const {
    const std::int64_t buffers = std::min<std::int64_t>(2, std::ssize(steps_) - 1);
    WorkspaceLayout layout;
    layout.reserve<T>(scratch_);
    layout.reserve<T>(checked_multiply(buffers, between_));
    return layout.bytes();
  }
  void run(const T* x, T* y, T* workspace) const {
    T* const buffers = workspace + scratch_;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      T* const to = i + 1 == steps_.size() ? y : buffers + (i % 2 == 0 ? 0 : between_);
      steps_[i].run(x, to, workspace);
      x = to;
    }
  }

 private:
  std::vector<ResizeStep<T>> steps_;
  std::int64_t scratch_ = 0;
  std::int64_t between_ = 0;
};

template <class T>
Kernel copy_kernel(std::int64_t size) {
  return [copy = StridedCopy({size}, {1}, {1})](const KernelArgs& args) {
    copy.run(args.output<T>(), args.input<T>(0));
  };
}

template <class T>
Kernel resize_kernel(KernelRequest& request, std::vector<AxisAndTable> axes) {
  if (axes.empty()) return copy_kernel<T>(request.shape().size());
  const Extrapolation<T> extrapolation(request, axes);
  const StepChain<T> chain(plan_steps<T>(request.shape(), std::move(axes)));
  request.need_workspace(chain.workspace_bytes());
  return [chain, extrapolation](const KernelArgs& args) {
    chain.run(args.input<T>(0), args.output<T>(), static_cast<T*>(args.workspace));
    extrapolation.run(args.output<T>());
  };
}

/// Elements of any type, where they are moved only.
Kernel make_resize(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  const InferContext context(const_cast<Node&>(request.node()));  // reads only
  const auto changed = resize_axes(context, request.shape());
  if (!changed) return {};
  std::vector<AxisAndTable> axes;
  bool only_moves = true;
  for (const ResizeAxis& axis : *changed) {
    axes.push_back({axis.axis, resize_table(request.node(), axis)});
    only_moves = only_moves && axes.back().table.only_moves();
  }
  Kernel kernel;
  const auto make = [&]<class T>() { kernel = resize_kernel<T>(request, std::move(axes)); };
  if (only_moves) {
    visit_width(request.dtype(), make);
  } else {
    visit_kernel_dtype(FloatTypes{}, request.dtype(), make);
  }
  return kernel;
}

Kernel make_resize_grad(KernelRequest& request) {
  const Shape& dx = request.output().shape;
  if (dx.size() == 0) return [](const KernelArgs&) {};
  const InferContext context(const_cast<Node&>(request.node()));  // reads only
  const auto changed = resize_axes(context, dx);
  if (!changed) return {};
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    if (request.shape().size() == 0) {
      kernel = [size = dx.size()](const KernelArgs& args) {
        fill_elements(args.output<T>(), size, T{});
      };
      return;
    }
    std::vector<AxisAndTable> axes;
    for (const ResizeAxis& axis : *changed) {
      axes.push_back({axis.axis, resize_table(request.node(), axis).transposed(request.node())});
    }
    if (axes.empty()) {
      kernel = copy_kernel<T>(dx.size());
      return;
    }
    const StepChain<T> chain(plan_steps<T>(request.shape(), std::move(axes)));
    request.need_workspace(chain.workspace_bytes());
    kernel = [chain](const KernelArgs& args) {
      chain.run(args.input<T>(0), args.output<T>(), static_cast<T*>(args.workspace));
    };
  });
  return kernel;
}

}  // namespace

void register_resize_cpu(KernelRegistry& registry) {
  registry.add({.op = "Resize", .name = "plain", .make = make_resize});
  registry.add(
      {.op = "ResizeGrad", .domain = kInternalDomain, .name = "plain", .make = make_resize_grad});
}

}  // namespace graft

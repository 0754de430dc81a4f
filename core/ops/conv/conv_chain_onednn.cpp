// A large result is made stripe by stripe: oneDNN's convolution makes some rows of an image, or
// some positions where the kernel has one tap, and while these are in a cache the chain goes over
// them. Each thread makes stripes of its own. Start at ConvByStripes::operator().
#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/chain_limits.h"
#include "core/ops/conv/conv_chain.h"
#include "core/ops/conv/conv_onednn.h"
#include "core/ops/conv/conv_rows.h"
#include "core/ops/conv/conv_tiles.h"
#include "core/ops/kernels/openmp_calls.h"
#include "core/ops/kernels/workspace.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using namespace conv_chain;

/// What a stripe reads and writes, so that it stays in a second-level cache.
constexpr std::int64_t kStripeBytes = 256 << 10;
/// Weights of more bytes would be brought from memory for each stripe.
constexpr std::int64_t kMostWeightBytes = 256 << 10;

std::int64_t bytes(std::int64_t elements) {
  return elements * static_cast<std::int64_t>(sizeof(float));
}

/// A convolution as stripes see it: images whose first axis is cut. All positions of a batch are
/// one image of one axis where the kernel has one tap.
struct Images {
  ConvSpec spec;
  std::vector<WindowAxis> axes;
  std::int64_t count;

  Images(ConvSpec whole, const ConvGeometry& g) : spec(std::move(whole)), count(g.batch) {
    if (is_pointwise(g)) {
      const std::int64_t rows = row_count(g);
      spec.x.shape = Shape{1, g.inputs, rows};
      spec.y.shape = Shape{1, g.outputs, rows};
      spec.known_w = spec.known_w.reshaped(Shape{g.outputs, g.inputs, 1});
      axes.push_back({.input = rows, .output = rows});
      count = 1;
    } else {
      axes.assign(g.axes.end() - g.rank, g.axes.end());
    }
    spec.x.layout = Layout::channels_last;  // or neutral, and then perhaps no longer
    spec.y.layout = Layout::channels_last;
    spec.attributes = window_to_attributes(axes);
    spec.attributes.set({"group", g.groups});
  }

  const WindowAxis& cut() const { return axes.front(); }
  /// Elements of one index along the cut axis.
  std::int64_t x_row() const { return spec.x.shape.size() / (spec.x.shape[0] * cut().input); }
  std::int64_t y_row() const { return spec.y.shape.size() / (spec.y.shape[0] * cut().output); }

  /// Stripes of an image, equally long but for the last.
  std::int64_t rows_of_stripe() const {
    const std::int64_t row = bytes(y_row() + x_row() * cut().stride);
    const std::int64_t most = std::max<std::int64_t>(1, kStripeBytes / row);
    const std::int64_t stripes = (cut().output + most - 1) / most;
    return (cut().output + stripes - 1) / stripes;
  }
};

/// Some rows of the result, and those of the input that they meet; `axis` is the cut one, with the
/// padding that they meet.
struct Rows {
  std::int64_t x_first;
  std::int64_t y_first;
  WindowAxis axis;
};

Rows rows_at(const WindowAxis& whole, std::int64_t first, std::int64_t count) {
  const std::int64_t begin = whole.position(first, 0);
  const std::int64_t end = whole.position(first + count - 1, 0) + whole.extent();
  Rows rows{std::clamp<std::int64_t>(begin, 0, whole.input), first, whole};
  rows.axis.input = std::min(end, whole.input) - rows.x_first;
  rows.axis.output = count;
  rows.axis.pad_begin = std::max<std::int64_t>(0, -begin);
  rows.axis.pad_end = std::max<std::int64_t>(0, end - whole.input);
  return rows;
}

/// Stripes of one size and padding: a kernel a thread, for oneDNN's are bound to one at a time.
struct StripeKind {
  WindowAxis axis;
  std::vector<Kernel> convolutions;
  ChainPart chain;
};

struct Stripe {
  std::size_t kind;
  std::int64_t x_first;  ///< elements
  std::int64_t y_first;
};

class ConvByStripes {
 public:
  ConvByStripes(KernelRequest& request, const Images& images)
      : has_bias_(request.has_input(kBias)), threads_(std::max(1, thread_count())) {
    const std::int64_t step = images.rows_of_stripe();
    for (std::int64_t image = 0; image < images.count && is_complete_; ++image) {
      for (std::int64_t row = 0; row < images.cut().output && is_complete_; row += step) {
        add_stripe(request, images, image,
                   rows_at(images.cut(), row, std::min(step, images.cut().output - row)));
      }
    }
    WorkspaceLayout layout;
    for (int i = 0; i < threads_; ++i) scratch_.push_back(layout.reserve_bytes(scratch_bytes_));
    if (is_complete_) request.need_workspace(layout.bytes());
  }

  /// Whether there is a kernel for each stripe.
  bool is_complete() const { return is_complete_; }

  void operator()(const KernelArgs& args) const {
    parallel_for(threads_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t thread = begin; thread < end; ++thread) {
        const auto count = static_cast<std::int64_t>(stripes_.size());
        const std::int64_t last = count * (thread + 1) / threads_;
        for (std::int64_t i = count * thread / threads_; i < last; ++i) {
          run_stripe(args, stripes_[static_cast<std::size_t>(i)], static_cast<std::size_t>(thread));
        }
      }
    });
  }

 private:
  void add_stripe(KernelRequest& request, const Images& images, std::int64_t image,
                  const Rows& rows) {
    is_complete_ = rows.axis.input > 0;  // else it meets padding alone
    if (!is_complete_) return;
    const auto is_like = [&](const StripeKind& kind) {
      return kind.axis.input == rows.axis.input && kind.axis.output == rows.axis.output &&
             kind.axis.pad_begin == rows.axis.pad_begin && kind.axis.pad_end == rows.axis.pad_end;
    };
    auto at = std::ranges::find_if(kinds_, is_like);
    if (at == kinds_.end()) {
      add_kind(request, images, rows.axis);
      if (!is_complete_) return;
      at = kinds_.end() - 1;
    }
    stripes_.push_back({static_cast<std::size_t>(at - kinds_.begin()),
                        (image * images.cut().input + rows.x_first) * images.x_row(),
                        (image * images.cut().output + rows.y_first) * images.y_row()});
  }

  void add_kind(KernelRequest& request, const Images& images, const WindowAxis& axis) {
    ConvSpec spec = images.spec;
    std::vector<WindowAxis> axes = images.axes;
    axes.front() = axis;
    for (const Attribute& attribute : window_to_attributes(axes)) spec.attributes.set(attribute);
    spec.x.shape = with_rows(spec.x.shape, axis.input);
    spec.y.shape = with_rows(spec.y.shape, axis.output);
    const Alone convolution = convolution_alone(spec, has_bias_);
    StripeKind kind{axis, {}, ChainPart(request, spec.y.shape.size())};
    const OnednnThreads alone(1);
    for (int i = 0; i < threads_; ++i) {
      KernelRequest one(*convolution.node, request.device());
      kind.convolutions.push_back(make_conv_onednn(one));
      scratch_bytes_ = std::max(scratch_bytes_, one.workspace_bytes());
    }
    is_complete_ = kind.chain && kind.convolutions.front();
    kinds_.push_back(std::move(kind));
  }

  /// One image with so many indices along the first spatial axis.
  static Shape with_rows(const Shape& image, std::int64_t rows) {
    std::vector<std::int64_t> dims = image.dims();
    dims[0] = 1;
    dims[2] = rows;
    return Shape(dims);
  }

  void run_stripe(const KernelArgs& args, const Stripe& stripe, std::size_t thread) const {
    const StripeKind& kind = kinds_[stripe.kind];
    const void* const inputs[] = {args.input<float>(kX) + stripe.x_first, args.inputs[kW],
                                  has_bias_ ? args.inputs[kBias] : nullptr};
    void* const outputs[] = {args.output<float>() + stripe.y_first};
    kind.convolutions[thread](
        {inputs, outputs, workspace_at<std::byte>(args, scratch_[thread]), args.run});
    kind.chain.run(args, stripe.y_first);
  }

  bool has_bias_;
  int threads_;
  bool is_complete_ = true;
  std::vector<StripeKind> kinds_;
  std::vector<Stripe> stripes_;
  std::size_t scratch_bytes_ = 0;
  std::vector<std::size_t> scratch_;
};

/// Known weights that stay in a cache, and a result that does not.
bool suits_stripes(const KernelRequest& request) {
  const Tensor weight = request.constant(kW);
  if (!weight.defined() || !lies_in_rows(request.input(kX)) || !lies_in_rows(request.output())) {
    return false;
  }
  for (int i = kFirstOperand; i < request.input_count(); ++i) {
    if (request.shape(i).size() != 1 && !lies_in_rows(request.input(i))) return false;
  }
  return bytes(weight.size()) <= kMostWeightBytes &&
         bytes_of(DType::f32, request.output().shape.size()) > kSmallConvBytes &&
         request.shape(kX).size() > 0;
}

Kernel make_stripes(KernelRequest& request) {
  if (!suits_stripes(request)) return {};
  const ConvSpec whole = whole_convolution(request);
  const Alone convolution = convolution_alone(whole, request.has_input(kBias));
  const ConvGeometry geometry(*convolution.node, request.shape(kX), request.shape(kW),
                              request.output().shape);
  KernelRequest alone(*convolution.node, request.device());
  if (geometry.rank > 3 || !geometry.is_complete || make_conv_by_tiles(alone)) return {};
  const auto kernel = std::make_shared<const ConvByStripes>(request, Images(whole, geometry));
  if (!kernel->is_complete()) return {};
  return [kernel](const KernelArgs& args) { (*kernel)(args); };
}

}  // namespace

void register_conv_chain_onednn(KernelRegistry& registry) {
  registry.add({.op = "ConvChain",
                .domain = kInternalDomain,
                .name = "stripes",
                .make = make_stripes,
                .knows_layouts = true});
}

}  // namespace graft

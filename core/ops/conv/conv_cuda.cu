// Convolutions as products of matrices by tiles (Chellapilla, Puri and Simard 2006), whose operands
// are read through the geometry: no unrolled image stands in memory. The gradient of the weight
// sums over all positions; their pieces are made side by side and joined in order.
#include <algorithm>

#include "core/device/cuda/numbers.h"
#include "core/ops/conv/conv_cuda.h"
#include "core/ops/kernels/conv_geometry.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/kernels/rows_cuda.h"
#include "core/ops/kernels/tiles_cuda.h"

namespace graft {
namespace {

/// A ConvGeometry in numbers of 32 bits, which a card divides several times faster.
struct Sizes {
  struct Axis {
    int input;
    int output;
    int kernel;
    int stride;
    int dilation;
    int pad;
  };
  int batch;
  int groups;
  int inputs;
  int outputs;
  Axis depth;
  Axis height;
  Axis width;

  explicit Sizes(const ConvGeometry& g)
      : batch(static_cast<int>(g.batch)),
        groups(static_cast<int>(g.groups)),
        inputs(static_cast<int>(g.inputs)),
        outputs(static_cast<int>(g.outputs)),
        depth(axis(g.axes[0])),
        height(axis(g.axes[1])),
        width(axis(g.axes[2])) {}

  /// Whether all of it can be counted so, padding included.
  static bool fit(const ConvGeometry& g) {
    if (g.rank > 3) return false;
    double most = 1.0;
    for (const WindowAxis& axis : g.axes) {
      const auto reach = static_cast<double>(axis.input) +
                         static_cast<double>(axis.output) * static_cast<double>(axis.stride);
      const double extent = static_cast<double>(axis.kernel) * static_cast<double>(axis.dilation);
      most *= reach + extent + static_cast<double>(axis.pad_begin);
    }
    const auto channels = static_cast<double>(g.groups) * static_cast<double>(g.inputs + g.outputs);
    return most * channels * static_cast<double>(g.batch + 1) < 0x1p31;
  }

  static Axis axis(const WindowAxis& a) {
    return {static_cast<int>(a.input),    static_cast<int>(a.output),
            static_cast<int>(a.kernel),   static_cast<int>(a.stride),
            static_cast<int>(a.dilation), static_cast<int>(a.pad_begin)};
  }
  __host__ __device__ int input_plane() const { return depth.input * height.input * width.input; }
  __host__ __device__ int output_plane() const {
    return depth.output * height.output * width.output;
  }
  __host__ __device__ int taps() const { return depth.kernel * height.kernel * width.kernel; }
};

struct Place {
  int depth;
  int height;
  int width;
};

__device__ Place place_of(int index, int height, int width) {
  const int row = index / width;
  return {row / height, row % height, index - row * width};
}

/// Where tap `k` of output `o` reads, or -1.
__device__ int position(const Sizes::Axis& axis, int o, int k) {
  const int at = o * axis.stride + k * axis.dilation - axis.pad;
  return at < axis.input ? at : -1;
}

/// The output that reads `at` by tap `k`, or -1.
__device__ int output(const Sizes::Axis& axis, int at, int k) {
  const int start = at + axis.pad - k * axis.dilation;
  if (start < 0) return -1;
  const int o = start / axis.stride;
  return o * axis.stride == start && o < axis.output ? o : -1;
}

/// In the plane of the input, where tap `tap` of output `o` of the plane reads; -1 outside.
__device__ int input_position(const Sizes& s, int o, int tap) {
  const Place at = place_of(o, s.height.output, s.width.output);
  const Place k = place_of(tap, s.height.kernel, s.width.kernel);
  const int d = position(s.depth, at.depth, k.depth);
  const int h = position(s.height, at.height, k.height);
  const int w = position(s.width, at.width, k.width);
  return d < 0 || h < 0 || w < 0 ? -1 : (d * s.height.input + h) * s.width.input + w;
}

/// In the plane of the output, the one that reads `at` of the input by tap `tap`; -1 if none does.
__device__ int output_position(const Sizes& s, int at, int tap) {
  const Place from = place_of(at, s.height.input, s.width.input);
  const Place k = place_of(tap, s.height.kernel, s.width.kernel);
  const int d = output(s.depth, from.depth, k.depth);
  const int h = output(s.height, from.height, k.height);
  const int w = output(s.width, from.width, k.width);
  return d < 0 || h < 0 || w < 0 ? -1 : (d * s.height.output + h) * s.width.output + w;
}

/// The product of one group: y[outputs, batch * plane] = w[outputs, inputs * taps] x', x' the
/// input under the windows. An entry is a group.
template <class T>
struct Forward {
  using Sum = typename Summed<T>::type;
  Sizes s;
  const T* x;
  const T* w;
  const T* bias;  ///< may be null
  T* y;
  std::int64_t m = s.outputs;
  std::int64_t n = static_cast<std::int64_t>(s.batch) * s.output_plane();
  std::int64_t k = static_cast<std::int64_t>(s.inputs) * s.taps();
  bool a_is_inner_contiguous = true;
  bool b_is_inner_contiguous = false;

  __device__ int entry(std::int64_t index) const { return static_cast<int>(index); }
  __device__ Sum a(int group, std::int64_t row, std::int64_t inner) const {
    return summand(w[(group * m + row) * k + inner]);
  }
  __device__ Sum b(int group, std::int64_t inner, std::int64_t column) const {
    const int c = static_cast<int>(inner) / s.taps();
    const int sample = static_cast<int>(column) / s.output_plane();
    const int at = input_position(s, static_cast<int>(column) % s.output_plane(),
                                  static_cast<int>(inner) % s.taps());
    if (at < 0) return Sum{0};
    const int plane = (sample * s.groups + group) * s.inputs + c;
    return summand(x[static_cast<std::int64_t>(plane) * s.input_plane() + at]);
  }
  __device__ void store(int group, std::int64_t row, std::int64_t column, Sum sum) const {
    const int channel = group * s.outputs + static_cast<int>(row);
    const int sample = static_cast<int>(column) / s.output_plane();
    const std::int64_t plane = static_cast<std::int64_t>(sample) * s.groups * s.outputs + channel;
    if (bias != nullptr) sum += summand(bias[channel]);
    set_sum(y[plane * s.output_plane() + static_cast<int>(column) % s.output_plane()], sum);
  }
};

/// dx[inputs, batch * plane] = w'[inputs, outputs * taps] dy', dy' the outputs that read each
/// position. An entry is a group.
template <class T>
struct Backward {
  using Sum = typename Summed<T>::type;
  Sizes s;
  const T* dy;
  const T* w;
  const T* addend;  ///< of the shape of dx, and maybe dx itself; or null
  const T* bias;    ///< by channel of dx, or null
  T* dx;
  std::int64_t m = s.inputs;
  std::int64_t n = static_cast<std::int64_t>(s.batch) * s.input_plane();
  std::int64_t k = static_cast<std::int64_t>(s.outputs) * s.taps();
  bool a_is_inner_contiguous = true;
  bool b_is_inner_contiguous = false;

  __device__ int entry(std::int64_t index) const { return static_cast<int>(index); }
  __device__ Sum a(int group, std::int64_t row, std::int64_t inner) const {
    const int channel = group * s.outputs + static_cast<int>(inner) / s.taps();
    return summand(w[(channel * m + row) * s.taps() + static_cast<int>(inner) % s.taps()]);
  }
  __device__ Sum b(int group, std::int64_t inner, std::int64_t column) const {
    const int channel = group * s.outputs + static_cast<int>(inner) / s.taps();
    const int sample = static_cast<int>(column) / s.input_plane();
    const int at = output_position(s, static_cast<int>(column) % s.input_plane(),
                                   static_cast<int>(inner) % s.taps());
    if (at < 0) return Sum{0};
    const std::int64_t plane = static_cast<std::int64_t>(sample) * s.groups * s.outputs + channel;
    return summand(dy[plane * s.output_plane() + at]);
  }
  __device__ void store(int group, std::int64_t row, std::int64_t column, Sum sum) const {
    const int channel = group * s.inputs + static_cast<int>(row);
    const int sample = static_cast<int>(column) / s.input_plane();
    const std::int64_t plane = static_cast<std::int64_t>(sample) * s.groups * s.inputs + channel;
    const std::int64_t at = plane * s.input_plane() + static_cast<int>(column) % s.input_plane();
    if (addend != nullptr) sum += summand(addend[at]);
    if (bias != nullptr) sum += summand(bias[channel]);
    set_sum(dx[at], sum);
  }
};

/// dw[outputs, inputs * taps] = dy[outputs, positions] x'[positions, inputs * taps] over the
/// positions of a piece, which go over the batch too. An entry is a piece of a group.
template <class T>
struct WeightPieces {
  using Sum = typename Summed<T>::type;
  Sizes s;
  const T* x;
  const T* dy;
  Sum* sums;  ///< [piece, dw]
  std::int64_t pieces;
  std::int64_t positions = static_cast<std::int64_t>(s.batch) * s.output_plane();
  std::int64_t m = s.outputs;
  std::int64_t n = static_cast<std::int64_t>(s.inputs) * s.taps();
  std::int64_t k = (positions + pieces - 1) / pieces;
  bool a_is_inner_contiguous = true;
  bool b_is_inner_contiguous = true;

  struct Entry {
    int group;
    std::int64_t piece;
    int first;
  };
  __device__ Entry entry(std::int64_t index) const {
    const std::int64_t piece = index / s.groups;
    return {static_cast<int>(index % s.groups), piece, static_cast<int>(piece * k)};
  }
  __device__ Sum a(const Entry& e, std::int64_t row, std::int64_t inner) const {
    const int at = e.first + static_cast<int>(inner);
    if (at >= positions) return Sum{0};
    const int channel = e.group * s.outputs + static_cast<int>(row);
    const std::int64_t plane =
        static_cast<std::int64_t>(at / s.output_plane()) * s.groups * s.outputs + channel;
    return summand(dy[plane * s.output_plane() + at % s.output_plane()]);
  }
  __device__ Sum b(const Entry& e, std::int64_t inner, std::int64_t column) const {
    const int at = e.first + static_cast<int>(inner);
    if (at >= positions) return Sum{0};
    const int c = static_cast<int>(column) / s.taps();
    const int from = input_position(s, at % s.output_plane(), static_cast<int>(column) % s.taps());
    if (from < 0) return Sum{0};
    const int plane = (at / s.output_plane() * s.groups + e.group) * s.inputs + c;
    return summand(x[static_cast<std::int64_t>(plane) * s.input_plane() + from]);
  }
  __device__ void store(const Entry& e, std::int64_t row, std::int64_t column, Sum sum) const {
    sums[((e.piece * s.groups + e.group) * m + row) * n + column] = sum;
  }
};

template <class T>
struct JoinPieces {
  const typename Summed<T>::type* sums;
  T* dw;
  std::int64_t size;
  std::int64_t pieces;
  __device__ void operator()(std::int64_t i) const {
    double total = 0.0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      total += static_cast<double>(sums[piece * size + i]);
    }
    set_sum(dw[i], static_cast<typename Summed<T>::type>(total));
  }
};

/// db: the sum of dy but for channels.
template <class T>
struct SumChannels {
  const T* dy;
  T* db;
  std::int64_t channels;
  std::int64_t plane;
  std::int64_t count;  ///< elements of a channel

  template <class Team>
  __device__ void operator()(std::int64_t channel, const Team& team) const {
    const double sum = team_sum(team, count, [&](std::int64_t i) {
      const T one = dy[(i / plane * channels + channel) * plane + i % plane];
      return static_cast<double>(summand(one));
    });
    if (team.rank == 0) set_sum(db[channel], static_cast<typename Summed<T>::type>(sum));
  }
};

using Types = TypeList<float, double, BFloat16>;

template <class T>
struct AddToChannels {
  const T* bias;
  T* y;
  std::int64_t channels;
  std::int64_t plane;
  __device__ void operator()(std::int64_t i) const {
    set_sum(y[i], summand(y[i]) + summand(bias[i / plane % channels]));
  }
};

}  // namespace

template <class T>
void add_to_channels(const ChannelPlanes& y, const T* bias, T* data, cudaStream_t stream) {
  start_items(AddToChannels<T>{bias, data, y.channels, y.plane}, y.batch * y.channels * y.plane,
              stream);
}

template <class T>
void sum_channels(const ChannelPlanes& dy, const T* data, T* db, cudaStream_t stream) {
  const std::int64_t count = dy.batch * dy.plane;
  start_rows(SumChannels<T>{data, db, dy.channels, dy.plane, count}, dy.channels, count, true,
             stream);
}

template void add_to_channels(const ChannelPlanes&, const float*, float*, cudaStream_t);
template void add_to_channels(const ChannelPlanes&, const BFloat16*, BFloat16*, cudaStream_t);
template void sum_channels(const ChannelPlanes&, const float*, float*, cudaStream_t);
template void sum_channels(const ChannelPlanes&, const BFloat16*, BFloat16*, cudaStream_t);

namespace {

Kernel make_conv(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.shape(1), request.output().shape);
  if (!Sizes::fit(g)) return {};
  const Sizes sizes(g);
  return cuda_kernel(Types{}, request,
                     [sizes]<class T>(const KernelArgs& args, cudaStream_t stream) {
                       const Forward<T> forward{sizes, args.input<T>(0), args.input<T>(1),
                                                args.input<T>(2), args.output<T>()};
                       start_tiles<typename Summed<T>::type>(forward, sizes.groups, stream);
                     });
}

/// `third`: what the third input is.
enum class Third { addend, bias };

template <Third third>
Kernel backward_kernel(const KernelRequest& request, const ConvGeometry& g) {
  if (!Sizes::fit(g)) return {};
  const Sizes sizes(g);
  return cuda_kernel(Types{}, request,
                     [sizes]<class T>(const KernelArgs& args, cudaStream_t stream) {
                       const T* const more = args.input<T>(2);
                       constexpr bool kIsAddend = third == Third::addend;
                       const Backward<T> backward{sizes,
                                                  args.input<T>(0),
                                                  args.input<T>(1),
                                                  kIsAddend ? more : nullptr,
                                                  kIsAddend ? nullptr : more,
                                                  args.output<T>()};
                       start_tiles<typename Summed<T>::type>(backward, sizes.groups, stream);
                     });
}

Kernel make_conv_input_grad(KernelRequest& request) {
  return backward_kernel<Third::addend>(
      request,
      ConvGeometry(request.node(), request.output().shape, request.shape(1), request.shape(0)));
}

Kernel make_conv_transpose(KernelRequest& request) {
  return backward_kernel<Third::bias>(
      request, transposed_geometry(request.node(), request.output().shape, request.shape(1),
                                   request.shape(0)));
}

/// So many pieces that a card is busy, but each with enough to sum.
std::int64_t weight_pieces(const Sizes& s) {
  constexpr std::int64_t kBlocks = 256;
  constexpr std::int64_t kFewestPositions = 256;
  const std::int64_t tiles = s.groups * tiles::count(s.outputs) *
                             tiles::count(static_cast<std::int64_t>(s.inputs) * s.taps());
  const std::int64_t positions = static_cast<std::int64_t>(s.batch) * s.output_plane();
  return std::clamp<std::int64_t>(positions / kFewestPositions, 1,
                                  kBlocks / std::max<std::int64_t>(tiles, 1) + 1);
}

Kernel make_conv_weight_grad(KernelRequest& request) {
  const ConvGeometry g(request.node(), request.shape(0), request.output().shape, request.shape(1));
  if (!Sizes::fit(g)) return {};
  const Sizes sizes(g);
  const std::int64_t pieces = weight_pieces(sizes);
  const std::int64_t size = request.output().shape.size();
  const ChannelPlanes dy_planes{g.batch, g.groups * g.outputs, g.output_plane()};
  const DType sum = request.dtype() == DType::f64 ? DType::f64 : DType::f32;
  request.need_workspace(bytes_of(sum, checked_multiply(pieces, size)));
  return cuda_kernel(Types{}, request, [=]<class T>(const KernelArgs& args, cudaStream_t stream) {
    auto* const sums = static_cast<typename Summed<T>::type*>(args.workspace);
    const T* const dy = args.input<T>(1);
    start_tiles<typename Summed<T>::type>(
        WeightPieces<T>{sizes, args.input<T>(0), dy, sums, pieces}, pieces * sizes.groups, stream);
    start_items(JoinPieces<T>{sums, args.output<T>(), size, pieces}, size, stream);
    if (args.output<T>(1) != nullptr) sum_channels(dy_planes, dy, args.output<T>(1), stream);
  });
}

}  // namespace

void register_conv_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "tiles",
                   {{"Conv", make_conv},
                    {"ConvTranspose", make_conv_transpose},
                    {"ConvInputGrad", make_conv_input_grad, kInternalDomain},
                    {"ConvWeightGrad", make_conv_weight_grad, kInternalDomain}});
}

}  // namespace graft

#include "core/device/cuda/philox.h"
#include "core/device/cuda/trigonometry.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/kernels/items_cuda.h"
#include "core/ops/math/random.h"

namespace graft {
namespace {

constexpr double kUnit = 0x1p-53;  // numbers have 53 random bits

/// As `word_pair` of core/base/rng.cpp.
__device__ std::uint64_t random_bits(const PhiloxWords& words, int pair) {
  const std::uint64_t high = words.word[2 * pair + 1];
  return (high << 32 | words.word[2 * pair]) >> 11;
}

/// Number `index` of Philox::uniform_double.
struct Uniform {
  __device__ double operator()(const PhiloxWords& words, bool is_second) const {
    return static_cast<double>(is_second ? random_bits(words, 1) : random_bits(words, 0)) * kUnit;
  }
};

__device__ double uniform_number(std::uint64_t seed, std::uint64_t random_stream,
                                 std::uint64_t index) {
  return Uniform{}(philox_block(seed, random_stream, index / 2), index % 2 != 0);
}

/// Number `index` of Philox::normal, but for the last bits of logarithm, sine and cosine.
struct Normal {
  __device__ double operator()(const PhiloxWords& words, bool is_second) const {
    constexpr int kTerms = 8;
    constexpr double kCircle = 6.283185307179586;
    const double u = static_cast<double>(random_bits(words, 0) + 1) * kUnit;
    const std::uint64_t turn = random_bits(words, 1);
    const std::uint64_t quarters = (turn + (std::uint64_t{1} << 50)) >> 51;
    const auto rest = static_cast<std::int64_t>(turn - (quarters << 51));
    const SineCosine<double> at =
        turned(sine_cosine_near_0<kTerms>(static_cast<double>(rest) * (kCircle * kUnit)), quarters);
    return ::sqrt(-2.0 * ::log(u)) * (is_second ? at.sine : at.cosine);
  }
};

/// Each element a * (a number drawn) + b.
template <class T, class Distribution>
struct Draw {
  T* y;
  const std::uint64_t* step;  ///< of the run
  std::uint64_t seed;
  std::uint64_t first_stream;
  double a;
  double b;

  __device__ void operator()(std::int64_t i) const {
    const auto index = static_cast<std::uint64_t>(i);
    const PhiloxWords words = philox_block(seed, first_stream + *step, index / 2);
    // Rounded once on every processor.
    y[i] = static_cast<T>(::fma(Distribution{}(words, index % 2 != 0), a, b));
  }
};

/// Numbers of the Mersenne Twister come one after the other: the CPU's.
template <class Distribution>
Kernel make_drawn(const KernelRequest& request, double a, double b) {
  const RandomSource source = RandomSource::of(request.node());
  if (source.is_twister) return {};
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.output().dtype, [&]<class T>() {
    kernel = [=, size = request.output().shape.size(),
              stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
      start_items(Draw<T, Distribution>{args.output<T>(), &args.run->step, source.seed,
                                        source.first_stream(), a, b},
                  size, stream);
    };
  });
  return kernel;
}

Kernel make_normal(KernelRequest& request) {
  const Attributes& a = request.attributes();
  return make_drawn<Normal>(request, a.get_float("scale", 1.0F), a.get_float("mean", 0.0F));
}

Kernel make_uniform(KernelRequest& request) {
  const double low = request.attributes().get_float("low", 0.0F);
  const double high = request.attributes().get_float("high", 1.0F);
  return make_drawn<Uniform>(request, high - low, low);
}

/// As `is_one` of random_cpu.cpp.
template <class T, class R>
struct Toss {
  const T* p;
  R* y;
  const std::uint64_t* step;
  std::uint64_t seed;
  std::uint64_t first_stream;

  __device__ void operator()(std::int64_t i) const {
    const auto chance = static_cast<double>(p[i]);
    const double u = uniform_number(seed, first_stream + *step, static_cast<std::uint64_t>(i));
    const bool is_one = chance > 0.0 && (chance <= 0.5 ? u > 1.0 - chance : u <= chance);
    y[i] = static_cast<R>(is_one ? 1 : 0);
  }
};

/// A class of each row's softmax, as `draw_classes` of random_cpu.cpp, but for the last bits of the
/// exponential.
template <class T, class R>
struct DrawClass {
  const T* scores;
  R* y;
  const std::uint64_t* step;
  std::uint64_t seed;
  std::uint64_t first_stream;
  std::int64_t classes;
  std::int64_t count;  ///< of numbers a row

  __device__ void operator()(std::int64_t i) const {
    const T* const row = scores + i / count * classes;
    auto largest = static_cast<double>(row[0]);
    for (std::int64_t c = 1; c < classes; ++c) {
      largest = largest < static_cast<double>(row[c]) ? static_cast<double>(row[c]) : largest;
    }
    const auto weight = [&](std::int64_t c) {
      return ::exp(static_cast<double>(row[c]) - largest);
    };
    double total = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) total += weight(c);
    double rest = uniform_number(seed, first_stream + *step, static_cast<std::uint64_t>(i)) * total;
    std::int64_t drawn = 0;
    while (drawn + 1 < classes && rest >= weight(drawn)) rest -= weight(drawn++);
    y[i] = static_cast<R>(drawn);
  }
};

Kernel make_bernoulli(KernelRequest& request) {
  using Results =
      TypeList<float, double, std::int64_t, std::int32_t, std::int8_t, std::uint8_t, bool>;
  const RandomSource source = RandomSource::of(request.node());
  if (source.is_twister) return {};
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_dtype(Results{}, request.output().dtype, [&]<class R>() {
      kernel = [=, size = request.shape().size(),
                stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        start_items(Toss<T, R>{args.input<T>(0), args.output<R>(), &args.run->step, source.seed,
                               source.first_stream()},
                    size, stream);
      };
    });
  });
  return kernel;
}

Kernel make_multinomial(KernelRequest& request) {
  const RandomSource source = RandomSource::of(request.node());
  if (source.is_twister) return {};
  Kernel kernel;
  visit_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    visit_dtype(TypeList<std::int32_t, std::int64_t>{}, request.output().dtype, [&]<class R>() {
      kernel = [=, classes = request.shape()[1], drawn = request.output().shape,
                stream = as_cuda(request.device()).stream()](const KernelArgs& args) {
        start_items(DrawClass<T, R>{args.input<T>(0), args.output<R>(), &args.run->step,
                                    source.seed, source.first_stream(), classes, drawn[1]},
                    drawn.size(), stream);
      };
    });
  });
  return kernel;
}

}  // namespace

void register_random_cuda(KernelRegistry& registry) {
  add_cuda_kernels(registry, "plain",
                   {{"Bernoulli", make_bernoulli},
                    {"Multinomial", make_multinomial},
                    {"RandomNormal", make_normal},
                    {"RandomNormalLike", make_normal},
                    {"RandomUniform", make_uniform},
                    {"RandomUniformLike", make_uniform}});
}

}  // namespace graft

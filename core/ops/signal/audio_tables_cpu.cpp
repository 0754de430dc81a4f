#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/ops/kernels/copy.h"
#include "core/ops/registry.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// A window as a sum of cosines: w[i] = a + b cos(2 pi i / n) + c cos(4 pi i / n).
struct Cosines {
  double a;
  double b;
  double c = 0.0;
};

Kernel window_kernel(const KernelRequest& request, const Cosines& sum) {
  const Shape& shape = request.output().shape;
  require_small_table(request.node(), shape[0]);
  const bool periodic = request.attributes().get_int("periodic", 1) != 0;
  const std::int64_t period = periodic ? shape[0] : shape[0] - 1;
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    // A symmetric window of one element is 1, as in PyTorch.
    values.push_back(period == 0 ? 1.0
                                 : sum.a + sum.b * std::cos(angle) + sum.c * std::cos(2 * angle));
  }
  return copy_kernel(Tensor::from(shape, values).cast(request.output().dtype));
}

Kernel make_hann(KernelRequest& request) {
  return window_kernel(request, {0.5, -0.5});
}
Kernel make_hamming(KernelRequest& request) {
  return window_kernel(request, {25.0 / 46, -21.0 / 46});
}
Kernel make_blackman(KernelRequest& request) {
  return window_kernel(request, {0.42, -0.5, 0.08});
}

double mel_of(double hertz) {
  return 2595 * std::log10(1 + hertz / 700);
}
double hertz_of(double mel) {
  return 700 * (std::pow(10.0, mel / 2595) - 1);
}

/// One band: rises from `low` to 1 at `centre`, falls to 0 at `high`. What lies beyond the spectrum
/// is left out.
void add_triangle(double low, double centre, double high, std::int64_t bins, std::int64_t bands,
                  double* column) {
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    const auto at = static_cast<double>(bin);
    double& weight = column[bin * bands];
    if (at == centre) {
      weight = 1.0;
    } else if (at >= low && at < centre) {
      weight = (at - low) / (centre - low);
    } else if (at > centre && at < high) {
      weight = (high - at) / (high - centre);
    }
  }
}

Kernel make_mel(KernelRequest& request) {
  for (int i = 0; i < 5; ++i) {
    if (!request.constant(i).defined() || request.constant(i).size() != 1) return {};
  }
  const auto number = [&](int i) { return to_double(request.constant(i)).front(); };
  const Shape& shape = request.output().shape;
  const std::int64_t bands = shape[1];
  require_small_table(request.node(), shape[0], bands);
  const double rate = number(2);
  const double low = mel_of(number(3));
  const double step = (mel_of(number(4)) - low) / static_cast<double>(bands + 2);
  if (!(rate > 0) || !std::isfinite(low) || !std::isfinite(step)) {
    fail(ErrorKind::argument, request.node().label(), ": a sample rate of ", rate, " and edges of ",
         number(3), " and ", number(4), " hertz give no bands");
  }
  const auto edge = [&](std::int64_t band) {
    const double hertz = hertz_of(low + step * static_cast<double>(band));
    return std::floor((number(1) + 1) * hertz / rate);
  };
  std::vector<double> values(static_cast<std::size_t>(shape.size()), 0.0);
  for (std::int64_t band = 0; band < bands; ++band) {
    add_triangle(edge(band), edge(band + 1), edge(band + 2), shape[0], bands, values.data() + band);
  }
  return copy_kernel(Tensor::from(shape, values).cast(request.output().dtype));
}

}  // namespace

void register_audio_tables_cpu(KernelRegistry& registry) {
  registry.add({.op = "HannWindow", .name = "table", .make = make_hann});
  registry.add({.op = "HammingWindow", .name = "table", .make = make_hamming});
  registry.add({.op = "BlackmanWindow", .name = "table", .make = make_blackman});
  registry.add({.op = "MelWeightMatrix", .name = "table", .make = make_mel});
}

}  // namespace graft

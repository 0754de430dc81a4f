#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/kernels/index.h"
#include "core/ops/registry.h"
#include "core/ops/text/tfidf.h"

namespace graft {
namespace {

/// Counts the n-grams that begin at x[start], with `step` between neighbours.
template <class Index>
void count_grams(const TfIdf& tfidf, const Index* x, std::int64_t length, std::int64_t start,
                 std::int64_t step, std::int64_t least_length, float* counts) {
  std::int64_t prefix = 0;
  std::int64_t at = start;
  for (std::int64_t size = 1; size <= tfidf.most_length && at < length; ++size, at += step) {
    const auto found = tfidf.grams.find({prefix, static_cast<std::int64_t>(x[at])});
    if (found == tfidf.grams.end()) return;
    const TfIdf::Gram& gram = found->second;
    if (size >= least_length && gram.coordinate >= 0) ++counts[gram.coordinate];
    prefix = gram.prefix;
  }
}

template <class Index>
void vectorize(const TfIdf& tfidf, const Index* x, std::int64_t length, float* y) {
  std::fill_n(y, tfidf.width, 0.0F);
  std::int64_t least = tfidf.least_length;
  for (std::int64_t step = 1; step <= tfidf.most_skipped + 1; ++step) {
    if (step * (least - 1) >= length) break;  // nor do n-grams with more skips fit
    for (std::int64_t start = 0; start < length; ++start) {
      count_grams(tfidf, x, length, start, step, least, y);
    }
    // Single numbers are counted once, whatever is skipped.
    if (least == 1 && ++least > tfidf.most_length) break;
  }
  for (std::int64_t i = 0; i < tfidf.width; ++i) {
    if (tfidf.counts_once) y[i] = std::min(y[i], 1.0F);
    if (!tfidf.weights.empty()) y[i] *= tfidf.weights[static_cast<std::size_t>(i)];
  }
}

Kernel make_tfidf(KernelRequest& request) {
  if (request.output().shape.size() == 0) return [](const KernelArgs&) {};
  const Shape& x = request.shape();
  const std::int64_t rows = x.rank() == 2 ? x[0] : 1;
  const std::int64_t length = x.rank() == 0 ? 1 : x[x.rank() - 1];
  Kernel kernel;
  visit_index(request, 0, [&]<class Index>() {
    kernel = [tfidf = TfIdf(request.node()), rows, length](const KernelArgs& args) {
      parallel_for(rows, 256 / (length + 1) + 1, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t row = first; row < last; ++row) {
          vectorize(tfidf, args.input<Index>(0) + row * length, length,
                    args.output<float>() + row * tfidf.width);
        }
      });
    };
  });
  return kernel;
}

}  // namespace

void register_tfidf_cpu(KernelRegistry& registry) {
  registry.add({.op = "TfIdfVectorizer", .name = "plain", .make = make_tfidf});
}

}  // namespace graft

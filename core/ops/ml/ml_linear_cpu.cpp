#include <algorithm>

#include "core/base/at.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/ml/ml_rows.h"
#include "core/ops/registry.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

/// scores = W x + b with W [rows, features]. Files hold more coefficients than that where their
/// input lost features; the first ones count, as in onnxruntime.
struct Affine {
  std::vector<float> weights;
  std::vector<float> offsets;
  std::int64_t rows = 0;
  std::int64_t features = 0;

  Affine(const KernelRequest& request, std::int64_t row_count)
      : weights(request.attributes().get_floats("coefficients")),
        offsets(request.attributes().get_floats("intercepts")),
        rows(row_count),
        features(samples_of(request.shape()).features) {
    const Node& node = request.node();
    const auto wanted = static_cast<std::size_t>(checked_multiply(rows, features));
    check_length(node, "coefficients", std::min(weights.size(), wanted), wanted);
    if (offsets.empty()) {
      require_small_table(node, rows);  // without features coefficients say nothing of them
      offsets.resize(static_cast<std::size_t>(rows));
    }
    check_length(node, "intercepts", offsets.size(), static_cast<std::size_t>(rows));
  }

  template <class T>
  void operator()(const T* x, double* scores) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      scores[r] = at(offsets, r) + dot(x, weights.data() + r * features, features);
    }
  }
};

Kernel make_linear_regressor(KernelRequest& request) {
  const std::int64_t targets = request.attributes().get_int("targets", 1);
  const Affine affine(request, targets);
  const PostTransform transform = post_transform(request.node());
  const auto finish = [=](const KernelArgs& args, std::int64_t i, double* scores) {
    apply(transform, scores, static_cast<std::size_t>(targets));
    std::transform(scores, scores + targets, args.output<float>() + i * targets,
                   [](double score) { return static_cast<float>(score); });
  };
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(), [&]<class T>() {
    kernel = row_kernel<T>(
        request, targets, [affine](const T* x, double* scores) { affine(x, scores); }, finish);
  });
  return kernel;
}

/// One row of coefficients tells one class from the rest, else each class has its own.
Kernel make_linear_classifier(KernelRequest& request) {
  const std::vector<std::int64_t> labels = class_labels(request.node(), "classlabels_ints");
  const auto classes = static_cast<std::int64_t>(labels.size());
  const std::int64_t features = samples_of(request.shape()).features;
  const auto given =
      static_cast<std::int64_t>(request.attributes().get_floats("coefficients").size());
  const bool is_single = classes == 1 || (classes == 2 && given == features);
  const Affine affine(request, is_single ? 1 : classes);
  const PostTransform transform = post_transform(request.node());
  const auto finish = [=](const KernelArgs& args, std::int64_t i, double* scores) {
    if (is_single) {
      const bool is_second = scores[0] > 0;
      write_two(transform, SecondScore::negation, scores[0], scores);
      const std::int64_t label = classes == 1 ? (is_second ? labels[0] : 0) : labels[is_second];
      return write_result(args, i, label, scores, 2);
    }
    const std::int64_t best = std::max_element(scores, scores + classes) - scores;
    apply(transform, scores, static_cast<std::size_t>(classes));
    write_result(args, i, at(labels, best), scores, classes);
  };
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(), [&]<class T>() {
    kernel = row_kernel<T>(
        request, std::max<std::int64_t>(classes, 2),
        [affine](const T* x, double* scores) { affine(x, scores); }, finish);
  });
  return kernel;
}

}  // namespace

void register_ml_linear_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op, .domain = kMlDomain, .name = "reference", .make = make});
  };
  add("LinearRegressor", make_linear_regressor);
  add("LinearClassifier", make_linear_classifier);
}

}  // namespace graft

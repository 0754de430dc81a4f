#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/ml/ml_rows.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Kernel functions of a support vector machine between a sample and the support vectors [n,F].
struct SupportVectors {
  enum class Form { linear, poly, rbf, sigmoid };
  Form form = Form::linear;
  double gamma = 0, offset = 0, degree = 0;
  std::vector<float> vectors;
  std::int64_t count = 0, features = 0;

  SupportVectors(const KernelRequest& request, std::int64_t vector_count)
      : vectors(request.attributes().get_floats("support_vectors")),
        count(vector_count),
        features(samples_of(request.shape()).features) {
    const Node& node = request.node();
    static constexpr std::array<std::string_view, 4> kNames{"LINEAR", "POLY", "RBF", "SIGMOID"};
    const std::string name = node.attributes.get_string("kernel_type", "LINEAR");
    const auto* const at = std::ranges::find(kNames, name);
    if (at == kNames.end()) {
      fail(ErrorKind::model, node.label(), ": kernel_type '", name, "' is unknown");
    }
    form = static_cast<Form>(at - kNames.begin());
    const std::vector<float> numbers = node.attributes.get_floats("kernel_params");
    if (!numbers.empty()) {
      check_length(node, "kernel_params", numbers.size(), 3);
      gamma = numbers[0];
      offset = numbers[1];
      degree = numbers[2];
    }
    check_length(node, "support_vectors", vectors.size(),
                 static_cast<std::size_t>(checked_multiply(count, features)));
  }

  template <class T>
  double operator()(const T* x, std::int64_t index) const {
    const float* const vector = vectors.data() + index * features;
    if (form == Form::rbf) {
      double sum = 0;
      for (std::int64_t i = 0; i < features; ++i) {
        const double difference = static_cast<double>(x[i]) - vector[i];
        sum += difference * difference;
      }
      return std::exp(-gamma * sum);
    }
    const double product = dot(x, vector, features);
    if (form == Form::poly) return std::pow(gamma * product + offset, degree);
    return form == Form::sigmoid ? std::tanh(gamma * product + offset) : product;
  }
};

float only_rho(const Node& node) {
  const std::vector<float> rho = node.attributes.get_floats("rho");
  if (rho.empty()) fail(ErrorKind::model, node.label(), ": has no rho");
  return rho.front();
}

Kernel make_svm_regressor(KernelRequest& request) {
  const Node& node = request.node();
  const std::int64_t count = node.attributes.get_int("n_supports", 0);
  if (count < 0) fail(ErrorKind::model, node.label(), ": n_supports is ", count);
  const SupportVectors support(request, count);
  const std::vector<float> weights = node.attributes.get_floats("coefficients");
  check_length(node, "coefficients", weights.size(),
               static_cast<std::size_t>(count > 0 ? count : support.features));
  const float rho = only_rho(node);
  const bool one_class = node.attributes.get_int("one_class", 0) != 0;
  const PostTransform transform = post_transform(node);
  const auto finish = [=](const KernelArgs& args, std::int64_t i, double* score) {
    if (one_class) *score = *score > 0 ? 1 : -1;
    apply(transform, score, 1);
    args.output<float>()[i] = static_cast<float>(*score);
  };
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(), [&]<class T>() {
    const auto row = [=](const T* x, double* score) {
      *score = rho;
      if (count == 0) *score += dot(x, weights.data(), support.features);
      for (std::int64_t i = 0; i < count; ++i) {
        *score += weights[static_cast<std::size_t>(i)] * support(x, i);
      }
    };
    kernel = row_kernel<T>(request, 1, row, finish);
  });
  return kernel;
}

/// A classifier by one score for each pair of classes, or, without support vectors, for each class.
struct SvmClassifier {
  std::vector<std::int64_t> labels;
  SupportVectors support;
  std::vector<std::int64_t> per_class;  // vectors of each class; empty: linear
  std::vector<std::int64_t> first;      // vector of each class
  std::vector<float> weights;           // [classes-1, vectors], or [classes, features]
  std::vector<float> rho;
  std::vector<float> prob_a, prob_b;
  PostTransform transform = PostTransform::none;
  bool all_positive = false;

  std::int64_t classes() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t pairs() const { return classes() * (classes() - 1) / 2; }
  bool is_linear() const { return per_class.empty(); }
  /// Doubles of workspace a sample: pair scores, votes, probabilities of pairs, and two of scores.
  std::int64_t width() const { return support.count + pairs() + classes() * (classes() + 4) + 2; }

  template <class T>
  void decide(const T* x, double* work, const KernelArgs& args, std::int64_t i) const;

 private:
  template <class T>
  void score_pairs(const T* x, double* values, double* scores, double* votes) const;
  void probabilities(const double* pair_scores, double* work, double* result) const;
  void finish(double* scores, std::int64_t count, std::int64_t best, double most,
              const KernelArgs& args, std::int64_t i) const;
};

template <class T>
void SvmClassifier::score_pairs(const T* x, double* values, double* scores, double* votes) const {
  for (std::int64_t v = 0; v < support.count; ++v) values[v] = support(x, v);
  std::fill_n(votes, classes(), 0.0);
  const auto part = [&](std::int64_t row, std::int64_t of_class) {
    const std::int64_t start = first[static_cast<std::size_t>(of_class)];
    double sum = 0;
    for (std::int64_t v = 0; v < per_class[static_cast<std::size_t>(of_class)]; ++v) {
      sum += values[start + v] * weights[static_cast<std::size_t>(row * support.count + start + v)];
    }
    return sum;
  };
  std::int64_t pair = 0;
  for (std::int64_t a = 0; a < classes(); ++a) {
    for (std::int64_t b = a + 1; b < classes(); ++b, ++pair) {
      scores[pair] = rho[static_cast<std::size_t>(pair)] + part(b - 1, a) + part(a, b);
      votes[scores[pair] > 0 ? a : b] += 1;
    }
  }
}

/// Couples the probabilities of pairs to those of classes. Source: Wu, Lin and Weng, "Probability
/// estimates for multi-class classification by pairwise coupling", 2004, algorithm 2, as in libsvm.
void SvmClassifier::probabilities(const double* pair_scores, double* work, double* result) const {
  const std::int64_t k = classes();
  double* const q = work;           // [k,k]
  double* const qp = work + k * k;  // [k]
  std::fill_n(q, k * k, 0.0);
  std::int64_t pair = 0;
  for (std::int64_t a = 0; a < k; ++a) {
    for (std::int64_t b = a + 1; b < k; ++b, ++pair) {
      const auto p = static_cast<std::size_t>(pair);
      const double of_a = std::clamp(
          1 - 1 / (1 + std::exp(-(pair_scores[pair] * prob_a[p] + prob_b[p]))), 1e-7, 1 - 1e-7);
      const double of_b = 1 - of_a;
      q[a * k + a] += of_b * of_b;
      q[b * k + b] += of_a * of_a;
      q[a * k + b] = q[b * k + a] = -of_a * of_b;
    }
  }
  std::fill_n(result, k, 1.0 / static_cast<double>(k));
  const double enough = 0.005 / static_cast<double>(k);
  for (std::int64_t turn = 0; turn < std::max<std::int64_t>(100, k); ++turn) {
    double pqp = 0;
    for (std::int64_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (std::int64_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * result[j];
      pqp += result[t] * qp[t];
    }
    double error = 0;
    for (std::int64_t t = 0; t < k; ++t) error = std::max(error, std::abs(qp[t] - pqp));
    if (error < enough) return;
    for (std::int64_t t = 0; t < k; ++t) {
      const double step = (pqp - qp[t]) / q[t * k + t];
      const double scale = 1 + step;
      pqp = (pqp + step * (step * q[t * k + t] + 2 * qp[t])) / (scale * scale);
      result[t] += step;
      for (std::int64_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / scale;
        result[j] /= scale;
      }
    }
  }
}

void SvmClassifier::finish(double* scores, std::int64_t count, std::int64_t best, double most,
                           const KernelArgs& args, std::int64_t i) const {
  std::int64_t label = labels[static_cast<std::size_t>(best)];
  if (rho.size() == 1 && classes() == 2) {
    if (prob_a.empty() && all_positive && most >= 0.5) label = labels[1];
  } else if (rho.size() == 1) {
    label = most > 0 ? 1 : 0;
  }
  if (count == 1) {
    write_two(transform, SecondScore::negation, scores[0], scores);
    count = 2;
  } else {
    apply(transform, scores, static_cast<std::size_t>(count));
  }
  write_result(args, i, label, scores, count);
}

template <class T>
void SvmClassifier::decide(const T* x, double* work, const KernelArgs& args, std::int64_t i) const {
  const std::int64_t k = classes();
  if (is_linear()) {
    for (std::int64_t c = 0; c < k; ++c) {
      work[c] = rho[0] + dot(x, weights.data() + c * support.features, support.features);
    }
    const std::int64_t best = std::max_element(work, work + k) - work;
    return finish(work, k, best, work[best], args, i);
  }
  double* const scores = work + support.count;
  double* const votes = scores + pairs() + 2;
  score_pairs(x, work, scores, votes);
  const std::int64_t best = std::max_element(votes, votes + k) - votes;
  if (prob_a.empty()) return finish(scores, pairs(), best, votes[best], args, i);
  double* const result = votes + k;
  probabilities(scores, result + k, result);
  finish(result, k, best, votes[best], args, i);
}

SvmClassifier read_classifier(const KernelRequest& request) {
  const Node& node = request.node();
  const Attributes& attributes = node.attributes;
  const std::vector<std::int64_t> per_class = attributes.get_ints("vectors_per_class");
  std::vector<std::int64_t> first;
  std::int64_t count = 0;
  for (const std::int64_t vectors : per_class) {
    if (vectors < 0 || vectors > INT32_MAX) {
      fail(ErrorKind::model, node.label(), ": a class has ", vectors, " vectors");
    }
    first.push_back(count);
    count += vectors;
  }
  SvmClassifier svm{class_labels(node, "classlabels_ints"),
                    SupportVectors(request, count),
                    per_class,
                    std::move(first),
                    attributes.get_floats("coefficients"),
                    attributes.get_floats("rho"),
                    attributes.get_floats("prob_a"),
                    attributes.get_floats("prob_b"),
                    post_transform(node),
                    false};
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  if (svm.classes() > INT16_MAX || (!svm.is_linear() && svm.classes() < 2)) {
    fail(ErrorKind::model, node.label(), ": has ", svm.classes(), " classes");
  }
  if (svm.is_linear()) {
    check_length(node, "coefficients", svm.weights.size(),
                 size(checked_multiply(svm.classes(), svm.support.features)));
    check_length(node, "rho", std::min<std::size_t>(svm.rho.size(), 1), 1);
    svm.prob_a.clear();
  } else {
    check_length(node, "vectors_per_class", per_class.size(), svm.labels.size());
    check_length(node, "coefficients", svm.weights.size(),
                 size(checked_multiply(svm.classes() - 1, count)));
    check_length(node, "rho", svm.rho.size(), size(svm.pairs()));
  }
  if (!svm.prob_a.empty()) {
    check_length(node, "prob_a", svm.prob_a.size(), size(svm.pairs()));
    check_length(node, "prob_b", svm.prob_b.size(), size(svm.pairs()));
  }
  svm.all_positive = std::ranges::none_of(svm.weights, [](float w) { return w < 0; });
  return svm;
}

Kernel make_svm_classifier(KernelRequest& request) {
  const auto svm = std::make_shared<const SvmClassifier>(read_classifier(request));
  const Samples2d samples = samples_of(request.shape());
  const std::int64_t width = svm->width();
  request.need_workspace(bytes_of(DType::f64, checked_multiply(samples.count, width)));
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(), [&]<class T>() {
    kernel = [=](const KernelArgs& args) {
      auto* const work = static_cast<double*>(args.workspace);
      parallel_for(samples.count, 4, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          svm->decide(args.input<T>(0) + i * samples.features, work + i * width, args, i);
        }
      });
    };
  });
  return kernel;
}

}  // namespace

void register_ml_svm_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "SVMRegressor", .domain = kMlDomain, .name = "reference", .make = make_svm_regressor});
  registry.add({.op = "SVMClassifier",
                .domain = kMlDomain,
                .name = "reference",
                .make = make_svm_classifier});
}

}  // namespace graft

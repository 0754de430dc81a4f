#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "core/base/at.h"
#include "core/base/parallel.h"
#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/ml/ml_scores.h"
#include "core/ops/ml/ml_tree.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

enum class Aggregate { average, sum, min, max };

/// What a model does with the leaves that a sample reaches.
struct Reducer {
  TreeEnsemble trees;
  Aggregate aggregate = Aggregate::sum;
  std::vector<double> base;
  std::int64_t targets = 1;

  /// Fills scores [targets].
  template <class T>
  void reduce(const T* sample, double* scores) const {
    const bool is_extreme = aggregate == Aggregate::min || aggregate == Aggregate::max;
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    std::fill_n(scores, targets, is_extreme ? kNothing : 0.0);
    for (const std::int64_t root : trees.roots) {
      for (const TreeEnsemble::Weight& weight : trees.leaf_of(root, sample).weights) {
        add(scores[weight.target], weight.value);
      }
    }
    for (std::int64_t i = 0; i < targets; ++i) {
      if (scores[i] != scores[i]) scores[i] = 0;  // no leaf for this target
      if (aggregate == Aggregate::average && !trees.roots.empty()) {
        scores[i] /= static_cast<double>(trees.roots.size());
      }
      if (!base.empty()) scores[i] += at(base, i);
    }
  }

 private:
  void add(double& score, double value) const {
    switch (aggregate) {
      case Aggregate::min:
        score = score != score ? value : std::min(score, value);
        break;
      case Aggregate::max:
        score = score != score ? value : std::max(score, value);
        break;
      default:
        score += value;
    }
  }
};

/// Base values: one a target, or none.
std::vector<double> base_values(const Node& node, std::int64_t targets) {
  std::vector<double> base = numbers_attribute(node, "base_values");
  if (!base.empty()) {
    check_length(node, "base_values", base.size(), static_cast<std::size_t>(targets));
  }
  return base;
}

void check_features(const KernelRequest& request, const TreeEnsemble& trees) {
  const Samples2d samples = samples_of(request.shape());
  if (trees.last_feature >= samples.features) {
    fail(ErrorKind::shape, request.node().label(), ": reads feature ", trees.last_feature,
         ", samples have ", samples.features);
  }
}

Aggregate aggregate_of(const Node& node) {
  const std::string name = node.attributes.get_string("aggregate_function", "SUM");
  if (name == "AVERAGE") return Aggregate::average;
  if (name == "SUM") return Aggregate::sum;
  if (name == "MIN") return Aggregate::min;
  if (name == "MAX") return Aggregate::max;
  fail(ErrorKind::model, node.label(), ": aggregate_function '", name, "' is unknown");
}

/// Runs finish(sample index, scores) on the reduced scores of each sample. The scores of all
/// samples lie in the workspace.
template <class T, class Finish>
Kernel tree_kernel(KernelRequest& request, Reducer reducer, const Finish& finish) {
  check_features(request, reducer.trees);
  const Samples2d samples = samples_of(request.shape());
  request.need_workspace(bytes_of(DType::f64, checked_multiply(samples.count, reducer.targets)));
  const auto shared = std::make_shared<const Reducer>(std::move(reducer));
  return [shared, samples, finish](const KernelArgs& args) {
    auto* const scores = static_cast<double*>(args.workspace);
    constexpr std::int64_t kGrain = 16;
    parallel_for(samples.count, kGrain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        double* const own = scores + i * shared->targets;
        shared->reduce(args.input<T>(0) + i * samples.features, own);
        finish(args, i, own);
      }
    });
  };
}

/// Writes transformed scores as the rows of output 0.
template <class Out>
auto write_row(PostTransform transform, std::int64_t targets) {
  return [=](const KernelArgs& args, std::int64_t i, double* scores) {
    apply(transform, scores, static_cast<std::size_t>(targets));
    std::transform(scores, scores + targets, args.output<Out>() + i * targets,
                   [](double score) { return static_cast<Out>(score); });
  };
}

Kernel make_tree_ensemble(KernelRequest& request) {
  const Node& node = request.node();
  Reducer reducer;
  reducer.targets = node.attributes.get_int("n_targets", 1);
  reducer.trees = tree_ensemble(node, reducer.targets);
  const std::int64_t aggregate = node.attributes.get_int("aggregate_function", 1);
  const std::int64_t transform = node.attributes.get_int("post_transform", 0);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4) {
    fail(ErrorKind::model, node.label(), ": aggregate_function ", aggregate, " or post_transform ",
         transform, " is unknown");
  }
  reducer.aggregate = static_cast<Aggregate>(aggregate);
  static constexpr std::array<PostTransform, 5> kOrder{
      PostTransform::none, PostTransform::softmax, PostTransform::logistic,
      PostTransform::softmax_zero, PostTransform::probit};
  const PostTransform chosen = at(kOrder, transform);
  Kernel kernel;
  visit_kernel_dtype(FloatTypes{}, request.dtype(), [&]<class T>() {
    kernel = tree_kernel<T>(request, reducer, write_row<T>(chosen, reducer.targets));
  });
  return kernel;
}

Kernel make_tree_regressor(KernelRequest& request) {
  const Node& node = request.node();
  Reducer reducer;
  reducer.targets = node.attributes.get_int("n_targets", 1);
  reducer.trees = old_tree_ensemble(node, "target", reducer.targets);
  reducer.aggregate = aggregate_of(node);
  reducer.base = base_values(node, reducer.targets);
  const PostTransform transform = post_transform(node);
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(), [&]<class T>() {
    kernel = tree_kernel<T>(request, reducer, write_row<float>(transform, reducer.targets));
  });
  return kernel;
}

/// How the label follows from scores: two classes may share one score.
struct Decision {
  std::vector<std::int64_t> labels;
  PostTransform transform = PostTransform::none;
  bool has_one_score = false;
  std::int64_t scored = 0;  // the class that the score belongs to
  SecondScore second = SecondScore::complement;

  void operator()(const KernelArgs& args, std::int64_t i, double* scores) const {
    const auto classes = static_cast<std::int64_t>(std::max<std::size_t>(labels.size(), 2));
    if (has_one_score) {
      std::array<double, 2> both{};
      const double score = scores[scored];
      const bool is_second = score > (second == SecondScore::complement ? 0.5 : 0.0);
      write_two(transform, second, score, both.data());
      return write(args, i, label(is_second), both.data(), classes);
    }
    const std::int64_t best = std::max_element(scores, scores + labels.size()) - scores;
    apply(transform, scores, labels.size());
    write(args, i, at(labels, best), scores, classes);
  }

 private:
  /// A single label stands for "it is": 0 for "it is not".
  std::int64_t label(bool is_second) const {
    if (labels.size() == 1) return is_second ? labels[0] : 0;
    return labels[is_second ? 1 : 0];
  }

  static void write(const KernelArgs& args, std::int64_t i, std::int64_t label,
                    const double* scores, std::int64_t classes) {
    if (auto* const out = args.output<std::int64_t>(0)) out[i] = label;
    float* const row = args.output<float>(1);
    if (row == nullptr) return;
    for (std::int64_t c = 0; c < classes; ++c) row[i * classes + c] = static_cast<float>(scores[c]);
  }
};

Kernel make_tree_classifier(KernelRequest& request) {
  const Node& node = request.node();
  Decision decision{class_labels(node, "classlabels_int64s"), post_transform(node)};
  Reducer reducer;
  reducer.targets = static_cast<std::int64_t>(decision.labels.size());
  reducer.trees = old_tree_ensemble(node, "class", reducer.targets);
  const std::vector<std::int64_t> scored = node.attributes.get_ints("class_ids");
  const bool is_of_one_class = !scored.empty() && std::ranges::all_of(scored, [&](std::int64_t id) {
    return id == scored.front();
  });
  decision.has_one_score =
      decision.labels.size() == 1 || (decision.labels.size() == 2 && is_of_one_class);
  decision.scored = is_of_one_class && decision.has_one_score ? scored.front() : 0;
  const std::vector<double> weights = numbers_attribute(node, "class_weights");
  const bool all_positive = std::ranges::none_of(weights, [](double w) { return w < 0; });
  decision.second = all_positive ? SecondScore::complement : SecondScore::negation;
  reducer.base = numbers_attribute(node, "base_values");
  if (decision.has_one_score && reducer.base.size() == 1) {
    reducer.base.assign(static_cast<std::size_t>(reducer.targets), reducer.base.front());
  }
  if (!reducer.base.empty()) {
    check_length(node, "base_values", reducer.base.size(), decision.labels.size());
  }
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(),
                     [&]<class T>() { kernel = tree_kernel<T>(request, reducer, decision); });
  return kernel;
}

}  // namespace

void register_ml_tree_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "TreeEnsemble", .domain = kMlDomain, .name = "reference", .make = make_tree_ensemble});
  registry.add({.op = "TreeEnsembleRegressor",
                .domain = kMlDomain,
                .name = "reference",
                .make = make_tree_regressor});
  registry.add({.op = "TreeEnsembleClassifier",
                .domain = kMlDomain,
                .name = "reference",
                .make = make_tree_classifier});
}

}  // namespace graft

#pragma once

#include <string>
#include <vector>

#include "core/ops/builder.h"
#include "core/ops/gradient.h"
#include "core/ops/infer.h"

namespace graft {

/// The domain of classical machine learning: trees, linear models, encoders.
inline constexpr std::string_view kMlDomain = "ai.onnx.ml";

/// Of models that bring all they have learnt in their attributes.
inline constexpr NotDifferentiable kInferenceOnly{
    "classical models are run, not trained; write them in ordinary ops to train them"};

/// What ONNX-ML's models do with scores at the end.
enum class PostTransform { none, softmax, logistic, softmax_zero, probit };

/// Throws Error{model} for another name.
PostTransform post_transform(const Node& node);

/// In place, on one sample's scores. "softmax_zero" leaves scores of 0 out of the sum.
void apply(PostTransform transform, double* scores, std::size_t count);

/// How the one score of a model for two classes becomes two.
enum class SecondScore { complement, negation };

/// Writes the scores (1-s, s) or (-s, s), transformed as onnxruntime does: complements are
/// probabilities already and stay as they are; PROBIT leaves them alone.
void write_two(PostTransform transform, SecondScore how, double score, double* scores);

/// Integer class labels of a classifier; class names have been replaced by their numbers.
std::vector<std::int64_t> class_labels(const Node& node, std::string_view attribute);

/// Classifiers give numbers; where the file has class names in attribute `names`, they get the
/// labels 0, 1, ... in attribute `labels`, and a LabelEncoder behind them looks the names up.
void name_classes(Node& node, std::string_view names, std::string_view labels, Builder& builder);
/// The same for models that keep them in `classlabels_strings` and `classlabels_ints`.
inline void upgrade_classifier(Node& node, std::int64_t, Builder& builder) {
  name_classes(node, "classlabels_strings", "classlabels_ints", builder);
}

/// Output Y [N] i64 and Z [N, classes] f32 of a classifier of X [N,F].
void infer_classifier(InferContext& context, std::int64_t classes);

/// Output 0 [N, targets] of X [N,F].
void infer_regressor(InferContext& context, DType dtype, std::int64_t targets);

/// The rows and columns of X: [N,F], or [F] for one sample.
struct Samples2d {
  std::int64_t count = 0;
  std::int64_t features = 0;
};
Samples2d samples_of(const Shape& x);

/// Types that ONNX-ML's models take.
using MlTypes = TypeList<float, double, std::int64_t, std::int32_t>;

/// Throws Error{model} unless `list` has `wanted` entries; `what` names it.
void check_length(const Node& node, std::string_view what, std::size_t found, std::size_t wanted);

}  // namespace graft

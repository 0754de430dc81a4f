#include "tools/graft/judge.h"

#include <algorithm>
#include <cmath>

#include "core/base/closest.h"
#include "core/base/error.h"
#include "core/runtime/session.h"
#include "data/loader.h"

namespace graft::cli {
namespace {

/// The probability of the best class. Scores may be probabilities already, or what a softmax makes
/// probabilities of (their logarithms among that).
double share_of_best(const double* scores, std::int64_t count, std::int64_t best) {
  double total = 0.0;
  for (std::int64_t c = 0; c < count; ++c) total += scores[c];
  const bool is_share = std::all_of(scores, scores + count, [](double p) { return p >= 0.0; });
  if (is_share && std::abs(total - 1.0) < 1e-3) return scores[best];
  double sum = 0.0;
  for (std::int64_t c = 0; c < count; ++c) sum += std::exp(scores[c] - scores[best]);
  return 1.0 / sum;
}

void add_batch(const Tensor& prediction, const Tensor& target, Judgement& result) {
  constexpr int kClassAxis = 1;
  result.confusion.add(prediction, target, kClassAxis);
  const std::int64_t classes = result.confusion.classes();
  const std::vector<double> scores = to_double(prediction);
  const std::vector<std::int64_t> labels = to_int64(target);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double* const row = scores.data() + static_cast<std::int64_t>(i) * classes;
    const std::int64_t guess = std::max_element(row, row + classes) - row;
    const std::int64_t truth = labels[i];
    if (truth < 0 || truth >= classes) {
      fail(ErrorKind::io, "label ", truth, " of sample ", result.samples, ", wanted 0 to ",
           classes - 1);
    }
    if (guess != truth) {
      result.worst.push_back({result.samples, truth, guess, share_of_best(row, classes, guess)});
    }
    ++result.samples;
  }
}

void keep_worst(std::vector<Mistake>& worst, std::size_t most) {
  std::ranges::stable_sort(worst, std::ranges::greater{}, &Mistake::confidence);
  if (worst.size() > most) worst.resize(most);
}

}  // namespace

Judgement judge(const Model& model, const std::shared_ptr<Dataset>& data, const Loss& loss,
                const std::string& output, const std::vector<Transform>& transforms,
                std::int64_t batch, std::size_t most, const ComputeArguments& compute) {
  Session session(model, {.device = &device(compute.device), .fallback = compute.fallback});
  const std::vector<std::string>& names = session.output_names();
  const auto judged = output.empty() ? names.begin() : std::ranges::find(names, output);
  if (judged == names.end()) {
    fail(ErrorKind::argument, "the model has no output '", output,
         "'; its outputs: ", quoted_list(names));
  }
  DataLoader loader(data, {.batch = batch, .transforms = transforms});
  Judgement result;
  for (const Batch& samples : loader) {
    const std::vector<Tensor> outputs = session.run(samples.inputs);
    const Tensor& scores = outputs[static_cast<std::size_t>(judged - names.begin())];
    if (!has_class_targets(loss) || scores.rank() != 2 || samples.target.rank() != 1) {
      fail(ErrorKind::unsupported,
           "classes are counted for scores [N,C] and a label a sample, "
           "the model has ",
           describe(scores));
    }
    add_batch(scores, samples.target, result);
    keep_worst(result.worst, most);
  }
  return result;
}

}  // namespace graft::cli

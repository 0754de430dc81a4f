#include "tools/graft/judge.h"

#include <algorithm>
#include <cmath>

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

void add_batch(const std::vector<double>& scores, const std::vector<double>& labels,
               Judgement& result) {
  const std::int64_t classes = result.classes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double* const row = scores.data() + static_cast<std::int64_t>(i) * classes;
    const std::int64_t guess = std::max_element(row, row + classes) - row;
    const auto truth = static_cast<std::int64_t>(labels[i]);
    if (truth < 0 || truth >= classes) {
      fail(ErrorKind::io, "label ", truth, " of sample ", result.samples, ", wanted 0 to ",
           classes - 1);
    }
    ++result.counts[static_cast<std::size_t>(truth * classes + guess)];
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
                std::int64_t batch, std::size_t most) {
  Session session(model);
  const std::vector<std::string>& names = session.output_names();
  const auto judged = output.empty() ? names.begin() : std::ranges::find(names, output);
  if (judged == names.end()) fail(ErrorKind::argument, "the model has no output '", output, "'");
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
    if (result.classes == 0) {
      result.classes = scores.shape()[1];
      result.counts.resize(static_cast<std::size_t>(result.classes * result.classes));
    }
    add_batch(to_double(scores), to_double(samples.target), result);
    keep_worst(result.worst, most);
  }
  return result;
}

}  // namespace graft::cli

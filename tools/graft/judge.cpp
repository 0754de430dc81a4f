#include "tools/graft/judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/closest.h"
#include "core/base/error.h"
#include "core/runtime/session.h"
#include "data/loader.h"

namespace graft::cli {

std::vector<double> probabilities(std::span<const double> scores) {
  constexpr double kRounding = 1e-3;
  std::vector<double> shares(scores.begin(), scores.end());
  const bool is_share = std::ranges::all_of(scores, [](double p) { return p >= 0.0; });
  const double total = std::accumulate(scores.begin(), scores.end(), 0.0);
  if (scores.empty() || (is_share && std::abs(total - 1.0) < kRounding)) return shares;
  const double best = *std::ranges::max_element(scores);
  double sum = 0.0;
  for (double& share : shares) sum += share = std::exp(share - best);
  for (double& share : shares) share /= sum;
  return shares;
}

namespace {

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
      const std::vector<double> shares = probabilities({row, static_cast<std::size_t>(classes)});
      result.worst.push_back(
          {result.samples, truth, guess, shares[static_cast<std::size_t>(guess)]});
    }
    ++result.samples;
  }
}

void keep_worst(std::vector<Mistake>& worst, std::size_t most) {
  std::ranges::stable_sort(worst, std::ranges::greater{}, &Mistake::confidence);
  if (worst.size() > most) worst.resize(most);
}

}  // namespace

std::size_t index_of_output(const Session& session, const std::string& output) {
  const std::vector<std::string>& names = session.output_names();
  const auto at = output.empty() ? names.begin() : std::ranges::find(names, output);
  if (at == names.end()) {
    fail(ErrorKind::argument, "the model has no output '", output, "'; it has ",
         quoted_list(names));
  }
  return static_cast<std::size_t>(at - names.begin());
}

Judgement judge(const Model& model, const std::shared_ptr<Dataset>& data, const Loss& loss,
                const std::string& output, const std::vector<Transform>& transforms,
                std::int64_t batch, std::size_t most, const ComputeArguments& compute) {
  Session session(model, {.device = &device(compute.device), .fallback = compute.fallback});
  const std::size_t judged = index_of_output(session, output);
  DataLoader loader(data, {.batch = batch, .transforms = transforms});
  Judgement result;
  for (const Batch& samples : loader) {
    const std::vector<Tensor> outputs = session.run(samples.inputs);
    const Tensor& scores = outputs[judged];
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

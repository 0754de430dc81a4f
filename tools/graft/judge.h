#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/graph/model.h"
#include "data/dataset.h"
#include "data/transforms.h"
#include "tools/graft/arguments.h"
#include "train/metric.h"

namespace graft {
class Session;
}

namespace graft::cli {

/// A sample that the model puts into a wrong class.
struct Mistake {
  std::int64_t index = 0;
  std::int64_t truth = 0;
  std::int64_t guess = 0;
  /// The probability that the model gives its guess.
  double confidence = 0.0;
};

/// What a model that tells classes apart makes of data.
struct Judgement {
  std::int64_t samples = 0;
  ConfusionMatrix confusion;
  /// The most confident first.
  std::vector<Mistake> worst;
};

/// The place of the output of that name; empty: the first. Throws Error{argument} if there is none.
std::size_t index_of_output(const Session& session, const std::string& output);

/// What a model's scores of one sample say, as shares of 1: they may be probabilities already, or
/// what a softmax makes probabilities of (their logarithms among that).
std::vector<double> probabilities(std::span<const double> scores);

/// `output`: that is judged; empty: the first. `most`: mistakes that are kept. Throws
/// Error{unsupported} unless the output has a score for each class of one label a sample.
Judgement judge(const Model& model, const std::shared_ptr<Dataset>& data, const Loss& loss,
                const std::string& output, const std::vector<Transform>& transforms,
                std::int64_t batch, std::size_t most, const ComputeArguments& compute);

}  // namespace graft::cli

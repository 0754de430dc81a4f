#include "train/data_parallel.h"

#include <algorithm>
#include <array>

#include "core/base/rng.h"
#include "core/ops/builder.h"
#include "optim/state_names.h"
#include "train/averages.h"
#include "train/step_builder.h"
#include "train/trainable.h"

namespace graft {
namespace {

/// Large enough that a network is busy with it, small enough that the first leave early and that
/// packing them fits a cache.
constexpr std::size_t kBucketBytes = std::size_t{2} << 20;
/// As the row of AllReduce.
constexpr std::size_t kMostTensors = 64;

/// Places of gradients that travel together.
using Bucket = std::vector<std::size_t>;

std::vector<Bucket> buckets_of(const std::vector<Expr>& gradients) {
  std::vector<Bucket> buckets;
  std::size_t bytes = 0;
  for (std::size_t i = gradients.size(); i-- > 0;) {
    const Value& gradient = *gradients[i].value();
    const bool fits = !buckets.empty() && bytes + gradient.bytes() <= kBucketBytes &&
                      buckets.back().size() < kMostTensors &&
                      gradients[buckets.back().front()].dtype() == gradient.dtype();
    if (!fits) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(i);
    bytes += gradient.bytes();
  }
  return buckets;
}

/// It stays alive until the next node of its kind, so the smallest is the right one.
Expr smallest(const std::vector<Expr>& all) {
  return *std::ranges::min_element(all, {}, [](const Expr& x) { return x.value()->bytes(); });
}

}  // namespace

std::uint64_t seed_of_rank(std::uint64_t seed, const Communicator& ranks) {
  constexpr std::uint64_t kRanks = 0x7261'6e6b'0000'0000;  // "rank"
  if (ranks.rank() == 0) return seed;
  const Philox random(seed ^ kRanks, 0);
  const auto [low, high, a, b] = random.block(static_cast<std::uint64_t>(ranks.rank()));
  return (std::uint64_t{high} << 32U) | low;
}

Means mean_over_ranks(const std::vector<Expr>& gradients, const Expr& before,
                      const Communicator& ranks, WirePrecision wire) {
  Means means{std::vector<Expr>(gradients.size()), before};
  Attributes attributes{{"communicator", AttributeValue(ranks.id())}};
  if (wire == WirePrecision::bf16) attributes.set({"wire", static_cast<int>(DType::bf16)});
  for (const Bucket& bucket : buckets_of(gradients)) {
    std::vector<Expr> inputs{means.last};
    for (const std::size_t i : bucket) inputs.push_back(gradients[i]);
    const std::vector<Expr> outputs = call_multi("AllReduce", kInternalDomain, inputs,
                                                 static_cast<int>(bucket.size()), attributes);
    for (std::size_t k = 0; k < bucket.size(); ++k) means.gradients[bucket[k]] = outputs[k];
    means.last = smallest(outputs);
  }
  return means;
}

std::vector<Tensor> statistics_of(const Graph& graph, const StateTensors& state) {
  std::vector<Tensor> all;
  for (const Value* statistic : running_statistics(graph)) {
    all.push_back(statistic->initializer());
    for (const std::string_view kind : {kMaster, kAverage}) {
      const auto kept = state.find(text(statistic->name(), '.', kind));
      if (kept != state.end()) all.push_back(kept->second);
    }
  }
  return all;
}

std::vector<Tensor> own_of_rank(const Graph& graph, const StateTensors& state) {
  std::vector<Tensor> own = statistics_of(graph, state);
  for (const auto& [name, tensor] : state) {
    if (name.ends_with(text('.', kAccumulated))) own.push_back(tensor);
  }
  return own;
}

std::vector<Tensor> changed_on_rank(const Graph& graph, const Trained& trained,
                                    const StateTensors& state) {
  std::vector<Tensor> changed;
  for (const std::string& name : trained.parameters) {
    changed.push_back(graph.find(name)->initializer());
  }
  for (const Tie& tie : trained.ties) changed.push_back(tie.follower_content);
  for (const Tensor& tensor : own_of_rank(graph, {})) changed.push_back(tensor);
  for (const auto& [name, tensor] : state) changed.push_back(tensor);
  return changed;
}

void check_own_updates(const Graph& graph, const std::vector<std::string>& parameters,
                       const TrainOptions& options) {
  if (or_alone(options.communicator).size() == 1) return;
  if (options.sync_every == 1 && !options.shard_state) return;
  for (const std::string& name : parameters) {
    const Tensor& tensor = graph.find(name)->initializer();
    if (is_half(tensor.dtype())) {
      fail(ErrorKind::unsupported,
           options.shard_state ? "shard_state is set" : text("sync_every is ", options.sync_every),
           " and '", name, "' is ", describe(tensor),
           ": ranks update only parameters of 32 or 64 bits by themselves");
    }
  }
}

void broadcast(const Tensor& tensor, int root, Communicator& ranks) {
  ranks.broadcast({static_cast<std::byte*>(tensor.data()), tensor.bytes()}, root);
}

void share_start(const Graph& graph, const std::vector<std::string>& parameters,
                 Communicator& ranks) {
  if (ranks.size() == 1) return;
  for (const std::string& name : parameters) {
    broadcast(graph.find(name)->initializer(), 0, ranks);
  }
  for (const Tensor& tensor : own_of_rank(graph, {})) broadcast(tensor, 0, ranks);
}

void average(const std::vector<Tensor>& tensors, Communicator& ranks) {
  const auto average_of = [&]<class T>(std::span<T> values) {
    ranks.all_reduce(values);
    for (T& value : values) value /= static_cast<T>(ranks.size());
  };
  for (const Tensor& tensor : tensors) {
    if (tensor.dtype() == DType::f32) {
      average_of(tensor.values<float>());
    } else if (is_half(tensor.dtype())) {
      const Tensor wide = tensor.cast(DType::f32);
      average_of(wide.values<float>());
      tensor.copy_from(wide.cast(tensor.dtype()));
    } else if (tensor.dtype() == DType::f64) {
      average_of(tensor.values<double>());
    } else {
      broadcast(tensor, 0, ranks);
    }
  }
}

StepReport over_ranks(const StepReport& report, Communicator& ranks) {
  const auto judged = static_cast<double>(report.judged);
  const double correct = report.accuracy.value_or(0.0) * judged;
  const double loss = report.weight > 0.0 ? report.loss * report.weight : 0.0;
  std::array<double, 5> sums{loss, report.weight, static_cast<double>(report.samples), correct,
                             judged};
  ranks.all_reduce(sums);
  StepReport joint;
  joint.loss = sums[0] / sums[1];
  joint.weight = sums[1];
  joint.samples = static_cast<std::int64_t>(sums[2]);
  joint.judged = static_cast<std::int64_t>(sums[4]);
  if (joint.judged > 0) joint.accuracy = sums[3] / sums[4];
  return joint;
}

std::array<bool, 2> any_of_ranks(const std::array<bool, 2>& are_so, Communicator& ranks) {
  std::array<double, 2> counts{are_so[0] ? 1.0 : 0.0, are_so[1] ? 1.0 : 0.0};
  ranks.all_reduce(counts);
  return {counts[0] > 0.0, counts[1] > 0.0};
}

bool any_of_ranks(bool is_so, Communicator& ranks) {
  return any_of_ranks({is_so, false}, ranks)[0];
}

}  // namespace graft

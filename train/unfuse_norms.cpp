#include "train/unfuse_norms.h"

#include <cmath>
#include <unordered_set>

#include "core/base/closest.h"
#include "core/base/parallel.h"
#include "core/base/regex.h"
#include "core/graph/edit.h"
#include "core/layers/layer_names.h"
#include "core/runtime/session.h"

namespace graft {
namespace {

constexpr float kEpsilon = 1e-5F;

/// A Conv or Gemm and what it is called.
struct Layer {
  Node* node;
  std::string name;
  std::string weight;
};

bool is_read_by_norm(const Node& node) {
  for (const Use& use : node.output()->uses()) {
    if (use.node->is("BatchNormalization")) return true;
  }
  return false;
}

/// Whether an output of the model comes from it without another layer in between.
bool makes_output(const Node& node) {
  std::vector<const Value*> open{node.output()};
  std::unordered_set<const Value*> seen{node.output()};
  while (!open.empty()) {
    const Value* const value = open.back();
    open.pop_back();
    if (value->is_graph_output()) return true;
    for (const Use& use : value->uses()) {
      if (edit::is_weighted(*use.node) || use.node->is("ConvTranspose")) continue;
      for (int i = 0; i < use.node->output_count(); ++i) {
        const Value* const next = use.node->output(i);
        if (next != nullptr && seen.insert(next).second) open.push_back(next);
      }
    }
  }
  return false;
}

/// The layers of the model with a weight of their own.
std::vector<Layer> layers_of(Graph& graph) {
  std::vector<Layer> layers;
  for (const auto& node : graph.nodes()) {
    if (!(node->is("Conv") || node->is("Gemm")) || node->output() == nullptr) continue;
    const Value* const weight = edit::origin_of(node->input(1));
    if (weight == nullptr) continue;
    layers.push_back({node.get(), edit::layer_name(*node, weight->name()), weight->name()});
  }
  return layers;
}

/// Why a layer cannot have a BatchNormalization of its own; empty where it can.
std::string obstacle(const Node& node) {
  const Value* const bias = node.input(2);
  if (is_read_by_norm(node)) return "a BatchNormalization follows it";
  if (bias != nullptr && !bias->is_initializer()) return "its bias is computed";
  if (bias != nullptr && bias->initializer().rank() != 1) return "its bias is not one a channel";
  if (node.attributes.get_float("beta", 1.0F) != 1.0F) return "it scales its bias";
  return {};
}

/// Means and sums of squared distances from them, a pair a channel, as far as they were seen.
/// Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm", 1979.
class ChannelStatistics {
 public:
  /// y: [N,C,*].
  void add(const Tensor& y) {
    const Tensor numbers = y.dtype() == DType::f32 ? y : y.cast(DType::f32);
    const std::int64_t channels = y.shape()[1];
    const std::int64_t area = y.shape().size(2, y.rank());
    dtype_ = y.dtype();
    means_.resize(static_cast<std::size_t>(channels), 0.0);
    squares_.resize(static_cast<std::size_t>(channels), 0.0);
    const std::int64_t count = y.shape()[0] * area;
    if (count == 0) return;  // channels without elements
    const float* const values = numbers.values<const float>().data();
    parallel_for(channels, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t c = first; c < last; ++c) {
        join(static_cast<std::size_t>(c), count, values + c * area, channels * area, area);
      }
    });
    count_ += count;
  }

  DType dtype() const { return dtype_; }
  std::int64_t channels() const { return static_cast<std::int64_t>(means_.size()); }
  double mean(std::size_t c) const { return means_[c]; }
  double variance(std::size_t c) const { return squares_[c] / static_cast<double>(count_); }

 private:
  /// `count` numbers of a channel: pieces of `area`, `step` apart.
  void join(std::size_t c, std::int64_t count, const float* values, std::int64_t step,
            std::int64_t area) {
    const auto over = [&](auto&& use) {
      for (std::int64_t n = 0; n < count / area; ++n) {
        for (std::int64_t i = 0; i < area; ++i) use(static_cast<double>(values[n * step + i]));
      }
    };
    double sum = 0.0;
    over([&](double value) { sum += value; });
    const double mean = sum / static_cast<double>(count);
    double square = 0.0;
    over([&](double value) { square += (value - mean) * (value - mean); });
    const double apart = mean - means_[c];
    const auto before = static_cast<double>(count_);
    const double all = before + static_cast<double>(count);
    means_[c] += apart * static_cast<double>(count) / all;
    squares_[c] += square + apart * apart * before * static_cast<double>(count) / all;
  }

  DType dtype_ = DType::undefined;
  std::int64_t count_ = 0;
  std::vector<double> means_;
  std::vector<double> squares_;
};

std::vector<ChannelStatistics> calibrate(const Model& model, const std::vector<Layer>& layers,
                                         DataLoader& data) {
  Model copy = model.clone();
  std::vector<Value*> outputs;
  for (const Layer& layer : layers) {
    outputs.push_back(copy.graph().find(layer.node->output()->name()));
  }
  copy.graph().set_outputs(outputs);
  edit::remove_unused(copy.graph());
  Session session(copy);
  std::vector<ChannelStatistics> statistics(layers.size());
  for (const Batch& batch : data) {
    const std::vector<Tensor> results = session.run(batch.inputs);
    for (std::size_t i = 0; i < results.size(); ++i) statistics[i].add(results[i]);
  }
  return statistics;
}

/// One number a channel.
template <class Number>
Tensor of_channels(DType dtype, std::int64_t channels, const Number& number) {
  Tensor tensor = Tensor::empty(DType::f32, {channels});
  const std::span<float> values = tensor.values<float>();
  for (std::size_t c = 0; c < values.size(); ++c) values[c] = static_cast<float>(number(c));
  return dtype == DType::f32 ? tensor : tensor.cast(dtype);
}

/// scale, bias, mean and variance with which y = BatchNormalization(y - b) for the layer's bias b.
struct Norm {
  Tensor scale, bias, mean, variance;
};

Norm norm_of(const Layer& layer, const ChannelStatistics& seen) {
  const DType dtype = seen.dtype();
  const std::int64_t channels = seen.channels();
  const Value* const own = layer.node->input(2);
  std::vector<double> idle =
      own == nullptr ? std::vector<double>{0.0} : to_double(own->initializer());
  if (idle.size() == 1) idle.assign(static_cast<std::size_t>(channels), idle[0]);
  for (std::size_t c = 0; c < idle.size(); ++c) {
    if (std::isfinite(seen.mean(c)) && std::isfinite(seen.variance(c))) continue;
    fail(ErrorKind::numeric, layer.node->label(), ": channel ", c,
         " is not finite for the data that calibrate; look at how they are normalized");
  }
  const auto deviation = [&](std::size_t c) {
    return std::sqrt(seen.variance(c) + static_cast<double>(kEpsilon));
  };
  return {
      .scale = of_channels(dtype, channels, deviation),
      .bias = of_channels(dtype, channels, [&](std::size_t c) { return seen.mean(c); }),
      .mean = of_channels(dtype, channels, [&](std::size_t c) { return seen.mean(c) - idle[c]; }),
      .variance = of_channels(dtype, channels, [&](std::size_t c) { return seen.variance(c); })};
}

void insert(Graph& graph, const Layer& layer, const Norm& norm) {
  const std::string stem = layer.name + ".norm";
  const auto parameter = [&](const char* name, const Tensor& tensor) {
    return graph.add_initializer(graph.unique_name(stem + name), tensor);
  };
  const std::vector<Value*> parameters{
      parameter(".weight", norm.scale), parameter(".bias", norm.bias),
      parameter(".running_mean", norm.mean), parameter(".running_var", norm.variance)};
  for (const std::size_t statistic : {2, 3}) parameters[statistic]->role = Role::statistic;
  Node* const node = edit::insert_behind(layer.node->output(), "BatchNormalization", parameters,
                                         layer.name + ".unnormalized", graph.next(layer.node),
                                         {{"epsilon", kEpsilon}});
  node->set_name(stem);
  if (layer.node->input(2) == nullptr) return;
  layer.node->set_input(2, nullptr);
  layer.node->trim_inputs();
}

std::vector<Layer> chosen(Graph& graph, std::string_view pattern, UnfusedNorms& report) {
  std::vector<Layer> layers = layers_of(graph);
  std::vector<std::string> names;
  for (const Layer& layer : layers) names.push_back(layer.name);
  const auto is_meant = [&](const Layer& layer) {
    if (pattern.empty()) return layer.node->is("Conv") && layer.node->input(2) != nullptr;
    const Regex wanted(pattern);
    return wanted.full_match(layer.name) || wanted.full_match(layer.weight) ||
           wanted.full_match(layer.node->name());
  };
  std::erase_if(layers, [&](const Layer& layer) {
    if (!is_meant(layer)) return true;
    std::string why = obstacle(*layer.node);
    if (why.empty() && pattern.empty() && makes_output(*layer.node)) why = "it makes an output";
    if (!why.empty()) report.left_out.push_back(layer.node->label() + ": " + why);
    return !why.empty();
  });
  if (!layers.empty()) return layers;
  fail(ErrorKind::argument, "unfuse-bn: ",
       report.left_out.empty() ? "no layer is meant; there are: " + quoted_list(names)
                               : "no layer can have a BatchNormalization: " + report.left_out[0]);
}

}  // namespace

UnfusedNorms unfuse_norms(Model& model, std::string_view pattern, DataLoader& data) {
  UnfusedNorms report;
  const std::vector<Layer> layers = chosen(model.graph(), pattern, report);
  const std::vector<ChannelStatistics> seen = calibrate(model, layers, data);
  std::vector<Norm> norms;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    norms.push_back(norm_of(layers[i], seen[i]));
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    insert(model.graph(), layers[i], norms[i]);
    report.layers.push_back(layers[i].name);
  }
  edit::remove_unused(model.graph());
  return report;
}

}  // namespace graft

#include <algorithm>
#include <numeric>

#include "core/ops/builder.h"
#include "core/ops/norm/norm_lowering.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Channels stand along axis 1; a 1-d input is one channel.
Dim channels_of(const SymShape& x) {
  return x.rank() > 1 ? x[1] : Dim(1);
}

/// Inputs first ... last - 1 have one element a channel of input 0.
void check_parameters(const InferContext& context, int first, int last) {
  context.require_rank(0, 1, 64);
  for (int i = first; i < last; ++i) {
    context.require_rank(i, 1, 1);
    if (context.shape(0) == nullptr || context.shape(i) == nullptr) continue;
    const Dim channels = channels_of(*context.shape(0));
    const Dim& found = (*context.shape(i))[0];
    if (channels.is_known() && found.is_known() && channels.value() != found.value()) {
      context.fail(ErrorKind::shape, "input '", context.input(i).name(), "' has ", found,
                   " elements, wanted one a channel: ", channels);
    }
  }
}

void infer_batch_norm(InferContext& context) {
  check_parameters(context, 1, 5);
  context.require_same_dtype({1, 2});
  context.require_same_dtype({3, 4});
  context.copy_type(0);
  const bool trains = context.attributes().get_int("training_mode", 0) != 0;
  if (!trains && (context.node().output(1) != nullptr || context.node().output(2) != nullptr)) {
    context.fail(ErrorKind::model, "running statistics are outputs only with training_mode = 1");
  }
  context.copy_type(3, 1);
  context.copy_type(4, 2);
}

void infer_batch_norm_training(InferContext& context) {
  const bool has_running = context.has_input(3) && context.has_input(4);
  check_parameters(context, 1, has_running ? 5 : 3);
  context.require_same_dtype({1, 2, 3, 4});
  context.copy_type(0);
  for (const int output : {1, 2}) context.copy_type(1, output);
  for (const int running : {3, 4}) {
    if (has_running) context.copy_type(running, running);
    if (!has_running && context.node().output(running) != nullptr) {
      context.fail(ErrorKind::model, "running statistics come out only if they come in");
    }
  }
}

void infer_batch_norm_grad(InferContext& context) {
  check_parameters(context, 2, 6);
  context.require_same_dtype({0, 1});
  context.require_same_dtype({2, 3, 4, 5});
  if (context.attributes().has("lower") && !context.has_input(5)) {
    context.fail(ErrorKind::model, "a fused activation needs the bias");
  }
  context.copy_type(0);
  for (const int output : {1, 2}) context.copy_type(2, output);
}

/// Opsets 7 and 9 have no training_mode: a node with more than one output trains.
/// spatial = 0 (opset 7) has one statistic for each element of a sample: plain broadcasting.
void upgrade_batch_norm(Node& node, std::int64_t from, Builder& builder) {
  if (from >= 14) return;
  const bool is_spatial = node.attributes.get_int("spatial", 1) != 0;
  const bool trains = node.output(1) != nullptr || node.output(2) != nullptr ||
                      node.output(3) != nullptr || node.output(4) != nullptr;
  for (int i = 3; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->is_unused()) {
      fail(ErrorKind::unsupported, node.label(), ": output ", i, " (saved statistics of opset ",
           from, ") is read; later opsets do not have it");
    }
  }
  if (!is_spatial) {
    if (trains) {
      fail(ErrorKind::unsupported, node.label(), ": spatial = 0 in training form");
    }
    const auto input = [&](int i) { return builder.expr(node.input(i)); };
    const Expr deviation =
        sqrt(input(4) + static_cast<double>(node.attributes.get_float("epsilon", 1e-5F)));
    const Expr y = (input(0) - input(3)) / deviation * input(1) + input(2);
    node.graph().replace_all_uses(node.output(0), y.value());
    return;
  }
  node.attributes.erase("spatial");
  if (!trains) return;
  Attributes attributes = node.attributes;
  attributes.set({"training_mode", 1});
  const Node* const newest =
      builder.node("BatchNormalization", "", node.copy_inputs(), 3, std::move(attributes));
  for (int i = 0; i < 3; ++i) {
    if (node.output(i) != nullptr) {
      node.graph().replace_all_uses(node.output(i), newest->output(i));
    }
  }
}

/// What gradients of a normalization over (N, spatial axes) need of the shape.
class BatchNormChannels {
 public:
  explicit BatchNormChannels(const Expr& x) : shape_(x.shape()) {
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      if (axis != 1) axes_.push_back(axis);
    }
    channels_ = shape_.rank() > 1 ? shape_[1] : 1;
    const std::int64_t count = channels_ == 0 ? 0 : shape_.size() / channels_;
    count_ = static_cast<double>(count);
  }
  /// Elements of one channel.
  double count() const { return count_; }
  /// [C] as [1, C, 1, ...].
  Expr spread(const Expr& v) const {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(shape_.rank()), 1);
    if (dims.size() > 1) dims[1] = channels_;
    return reshape(v, Shape(dims));
  }
  Expr sum(const Expr& v) const { return reshape(reduce_sum(v, axes_, false), {channels_}); }
  Expr mean(const Expr& v) const { return reshape(reduce_mean(v, axes_, false), {channels_}); }

 private:
  Shape shape_;
  std::vector<std::int64_t> axes_;
  std::int64_t channels_ = 1;
  double count_ = 0;
};

/// Running statistics are those of a variable: y = (x - mean) * s * scale + bias, s = 1 / sqrt(var
/// + epsilon).
std::vector<Expr> inference_rule(const Gradient& g) {
  const BatchNormChannels channels(g.x());
  const auto epsilon = static_cast<double>(g.attributes().get_float("epsilon", 1e-5F));
  const Expr scale = g.x(1);
  const Expr inv_std = reciprocal(sqrt(g.x(4) + epsilon));
  const Expr slope = scale * inv_std;
  const Expr dbias = channels.sum(g.dy());
  const Expr moment = channels.sum(g.dy() * (g.x() - channels.spread(g.x(3))));
  return {g.dy() * channels.spread(slope), moment * inv_std, dbias, -(dbias * slope),
          moment * slope * inv_std * inv_std * -0.5};
}

std::vector<Expr> norm_grad(const Gradient& g, const Expr& mean, const Expr& inv_std) {
  Attributes activation;
  for (const char* name : {"lower", "upper", "strict"}) {
    if (g.attributes().has(name)) activation.set(*g.attributes().find(name));
  }
  return call_multi("BatchNormGrad", kInternalDomain,
                    {g.x(), g.dy(), g.x(1), mean, inv_std, g.x(2)}, 3, activation);
}

/// A batch without elements leaves the running statistics as they are.
std::vector<Expr> empty_batch_rule(const Gradient& g) {
  return {{}, {}, {}, g.has_dy(1) ? g.dy(1) : Expr(), g.has_dy(2) ? g.dy(2) : Expr()};
}

/// The statistics are computed again: the standard's op does not give them. The running ones are
/// outputs like others.
std::vector<Expr> batch_rule(const Gradient& g) {
  const BatchNormChannels channels(g.x());
  if (channels.count() == 0) return empty_batch_rule(g);
  const Expr mean = channels.mean(g.x());
  const Expr centered = g.x() - channels.spread(mean);
  const Expr variance = channels.mean(centered * centered);
  const auto epsilon = static_cast<double>(g.attributes().get_float("epsilon", 1e-5F));
  const auto momentum = static_cast<double>(g.attributes().get_float("momentum", 0.9F));
  std::vector<Expr> result = norm_grad(g, mean, reciprocal(sqrt(variance + epsilon)));
  const double share = (1.0 - momentum) / channels.count();
  if (g.has_dy(1)) result[0] = result[0] + channels.spread(g.dy(1) * share);
  if (g.has_dy(2)) result[0] = result[0] + channels.spread(g.dy(2) * (2.0 * share)) * centered;
  for (const int running : {1, 2}) {
    result.push_back(g.has_dy(running) ? g.dy(running) * momentum : Expr());
  }
  return result;
}

std::vector<Expr> batch_norm_rule(const Gradient& g) {
  const bool trains = g.attributes().get_int("training_mode", 0) != 0;
  return trains ? batch_rule(g) : inference_rule(g);
}

std::vector<Expr> batch_norm_training_rule(const Gradient& g) {
  return norm_grad(g, g.y(1), g.y(2));
}

SampleInput any(const Shape& shape) {
  return {.shape = shape};
}
SampleInput positive(std::int64_t channels) {
  return {.shape = {channels}, .low = 0.5, .high = 2.0};
}

struct BatchNormCase {
  std::string name;
  Shape x;
};

std::vector<BatchNormCase> batch_norm_cases() {
  return {{"image", {3, 4, 5, 6}},     {"features", {7, 5}},          {"line", {4, 3, 9}},
          {"volume", {2, 3, 3, 2, 4}}, {"one_channel", {5, 1, 4, 4}}, {"one_pixel", {6, 19, 1, 1}},
          {"many", {4, 70, 17, 9}},    {"many_features", {130, 150}}};
}

std::vector<SampleInput> five_inputs(const Shape& x) {
  const std::int64_t channels = x.rank() > 1 ? x[1] : 1;
  return {any(x), any({channels}), any({channels}), any({channels}), positive(channels)};
}

std::vector<Sample> batch_norm_samples() {
  std::vector<Sample> samples;
  for (const BatchNormCase& c : batch_norm_cases()) {
    samples.push_back({c.name, five_inputs(c.x), {{"epsilon", 1e-3F}}});
    samples.push_back(
        {c.name + "_training", five_inputs(c.x), {{"momentum", 0.75F}, {"training_mode", 1}}, 3});
  }
  samples.push_back({"one_dim", five_inputs({6})});
  samples.push_back({"empty_batch", five_inputs({0, 3, 2, 2})});
  samples.push_back({"empty_batch_training", five_inputs({0, 3, 2, 2}), {{"training_mode", 1}}, 3});
  samples.push_back(
      {"training_without_statistics", five_inputs({3, 2, 4}), {{"training_mode", 1}}});
  return samples;
}

const Attributes kBatchNormRelu{{"lower", 0.0F}, {"strict", 1}};
const Attributes kBatchNormClip{{"lower", -0.25F}, {"upper", 0.5F}};

std::vector<Sample> batch_norm_training_samples() {
  const std::string kUpdates =
      "updates variables; BatchNormalization with training_mode checks its rule";
  std::vector<Sample> samples;
  for (const BatchNormCase& c : batch_norm_cases()) {
    samples.push_back({c.name, five_inputs(c.x), {{"momentum", 0.75F}}, 5, kUpdates});
    samples.push_back({c.name + "_relu", five_inputs(c.x), kBatchNormRelu, 5, kUpdates});
    samples.push_back({c.name + "_clip", five_inputs(c.x), kBatchNormClip, 5, kUpdates});
    std::vector<SampleInput> three = five_inputs(c.x);
    three.resize(3);
    samples.push_back({c.name + "_again", three, kBatchNormRelu, 3, kUpdates});
  }
  samples.push_back({"empty_batch", five_inputs({0, 3, 2, 2}), {{"epsilon", 1e-3F}}, 5, kUpdates});
  return samples;
}

std::vector<Sample> batch_norm_grad_samples() {
  std::vector<Sample> samples;
  for (const BatchNormCase& c : batch_norm_cases()) {
    const std::int64_t channels = c.x[1];
    samples.push_back({c.name,
                       {any(c.x), any(c.x), any({channels}), any({channels}), positive(channels)},
                       {},
                       3});
    for (const auto& [name, attributes] :
         {std::pair("_relu", kBatchNormRelu), std::pair("_clip", kBatchNormClip)}) {
      samples.push_back({c.name + name,
                         {any(c.x), any(c.x), any({channels}), any({channels}), positive(channels),
                          any({channels})},
                         attributes,
                         3});
    }
  }
  return samples;
}

const std::vector<Param> kBatchNormInputs{{"X"}, {"scale"}, {"B"}, {"input_mean"}, {"input_var"}};
const std::vector<AttributeDef> kStatistics{{"epsilon", AttributeType::number},
                                            {"momentum", AttributeType::number}};

/// A clamp that fuse_activations puts behind the normalization (FusedActivation).
const std::vector<AttributeDef> kActivation{{"lower", AttributeType::number},
                                            {"upper", AttributeType::number},
                                            {"strict", AttributeType::integer}};

}  // namespace

/// Batch normalization (Ioffe and Szegedy 2015). momentum is ONNX's: running = running * momentum +
/// batch * (1 - momentum), 1 minus PyTorch's.
void register_batch_norm(OpRegistry& registry) {
  // With training_mode, running_var takes in the population variance, as the standard says.
  registry.add(
      {.name = "BatchNormalization",
       .since = {{1},
                 {6, "is_test"},
                 {7, "no is_test: the number of outputs decides"},
                 {9, "no spatial"},
                 {14, "training_mode; no saved statistics"},
                 {15, "types of scale and statistics"}},
       .inputs = kBatchNormInputs,
       .outputs = {{"Y"}, {"running_mean", Arity::optional}, {"running_var", Arity::optional}},
       .attributes = {kStatistics[0], kStatistics[1], {"training_mode", AttributeType::integer}},
       .infer = infer_batch_norm,
       .upgrade = upgrade_batch_norm,
       .aliases = {{0, 0, AliasKind::in_place}},
       .layout = {LayoutRule::Kind::together, {0}, {0}},
       .weights = {1, 2},
       .backward = batch_norm_rule,
       .samples = batch_norm_samples});
  // What a training step runs instead. As in PyTorch, the running variance takes in the unbiased
  // variance of the batch (n - 1); a batch of one element a channel counts with variance 0. Without
  // running statistics it only normalizes, for a second time (passes::recompute).
  registry.add(
      {.name = "BatchNormTraining",
       .domain = kInternalDomain,
       .inputs = {{"x"},
                  {"scale"},
                  {"bias"},
                  {"running_mean", Arity::optional},
                  {"running_var", Arity::optional}},
       .outputs = {{"y"},
                   {"saved_mean"},
                   {"saved_inv_std"},
                   {"new_mean", Arity::optional},
                   {"new_var", Arity::optional}},
       .attributes = {kStatistics[0], kStatistics[1], kActivation[0], kActivation[1],
                      kActivation[2]},
       .infer = infer_batch_norm_training,
       .aliases = {{0, 0, AliasKind::in_place}, {3, 3, AliasKind::state}, {4, 4, AliasKind::state}},
       .layout = {LayoutRule::Kind::together, {0}, {0}},
       .mixed_precision = {MixedPrecision::Kind::follows, {0}},
       .lower = lower_batch_norm_training,
       .backward = batch_norm_training_rule,
       .samples = batch_norm_training_samples});
  registry.add(
      {.name = "BatchNormGrad",
       .domain = kInternalDomain,
       .inputs =
           {{"x"}, {"dy"}, {"scale"}, {"saved_mean"}, {"saved_inv_std"}, {"bias", Arity::optional}},
       .outputs = {{"dx"}, {"dscale"}, {"dbias"}},
       .attributes = kActivation,
       .infer = infer_batch_norm_grad,
       .aliases = {{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}},
       .layout = {LayoutRule::Kind::together, {0, 1}, {0}},
       .lower = lower_batch_norm_grad,
       .backward = NotDifferentiable{"second derivatives of batch normalization are not "
                                     "offered"},
       .samples = batch_norm_grad_samples});
}

}  // namespace graft

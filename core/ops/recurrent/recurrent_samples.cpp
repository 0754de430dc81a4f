#include "core/ops/recurrent/recurrent.h"

namespace graft {
namespace {

/// A call to be: sizes, which optional inputs it has, attributes.
struct Call {
  std::string name;
  std::int64_t steps = 3;
  std::int64_t batch = 2;
  std::int64_t input = 3;
  std::int64_t hidden = 4;
  bool has_bias = true;
  std::vector<double> lengths{};
  bool has_initial = false;
  bool has_peepholes = false;
  Attributes attributes{};
  bool all_outputs = true;
};

std::int64_t gates_of(RecurrentKind kind) {
  return kind == RecurrentKind::lstm ? 4 : (kind == RecurrentKind::gru ? 3 : 1);
}

std::int64_t directions_of(const Call& call) {
  return call.attributes.get_string("direction", "forward") == "bidirectional" ? 2 : 1;
}

bool is_batch_first(const Call& call) {
  return call.attributes.get_int("layout", 0) != 0;
}

SampleInput recurrent_input(Shape shape, double range = 0.8) {
  return {.shape = std::move(shape), .low = -range, .high = range};
}

SampleInput x_of(const Call& call) {
  return recurrent_input(is_batch_first(call) ? Shape{call.batch, call.steps, call.input}
                                              : Shape{call.steps, call.batch, call.input});
}
SampleInput state_of(const Call& call) {
  const std::int64_t directions = directions_of(call);
  return recurrent_input(is_batch_first(call) ? Shape{call.batch, directions, call.hidden}
                                              : Shape{directions, call.batch, call.hidden});
}
SampleInput y_of(const Call& call) {
  const std::int64_t directions = directions_of(call);
  return recurrent_input(is_batch_first(call)
                             ? Shape{call.batch, call.steps, directions, call.hidden}
                             : Shape{call.steps, directions, call.batch, call.hidden});
}
SampleInput lengths_of(const Call& call) {
  if (call.lengths.empty()) return absent();
  return {.shape = {call.batch}, .values = call.lengths, .dtype = DType::i32};
}

Sample forward_sample(RecurrentKind kind, const Call& call, int outputs) {
  const std::int64_t directions = directions_of(call);
  const std::int64_t columns = gates_of(kind) * call.hidden;
  Sample sample{.name = call.name, .attributes = call.attributes, .outputs = outputs};
  sample.inputs = {x_of(call),
                   recurrent_input({directions, columns, call.input}),
                   recurrent_input({directions, columns, call.hidden}, 0.5),
                   call.has_bias ? recurrent_input({directions, 2 * columns}, 0.3) : absent(),
                   lengths_of(call),
                   call.has_initial ? state_of(call) : absent()};
  if (kind == RecurrentKind::lstm) {
    sample.inputs.push_back(call.has_initial ? state_of(call) : absent());
    sample.inputs.push_back(call.has_peepholes ? recurrent_input({directions, 3 * call.hidden}, 0.5)
                                               : absent());
  }
  return sample;
}

AttributeValue texts(std::vector<std::string> list) {
  return AttributeValue(std::move(list));
}

/// Every branch for all kinds.
std::vector<Call> common_calls() {
  const Attributes reverse{{"direction", "reverse"}};
  const Attributes both{{"direction", "bidirectional"}};
  const Attributes both_batch_first{{"direction", "bidirectional"}, {"layout", 1}};
  return {
      {.name = "plain", .has_bias = false, .all_outputs = false},
      {.name = "states",
       .has_initial = true,
       .has_peepholes = true,
       .attributes = {{"hidden_size", 4}}},
      {.name = "lengths", .lengths = {1, 3}, .has_initial = true, .has_peepholes = true},
      {.name = "length_zero", .lengths = {0, 2}},
      {.name = "reverse", .has_initial = true, .attributes = reverse},
      {.name = "reverse_lengths",
       .lengths = {3, 1},
       .has_initial = true,
       .has_peepholes = true,
       .attributes = reverse},
      {.name = "both", .has_initial = true, .has_peepholes = true, .attributes = both},
      {.name = "both_lengths", .lengths = {2, 1}, .attributes = both},
      {.name = "batch_first", .has_initial = true, .attributes = {{"layout", 1}}},
      {.name = "both_batch_first",
       .lengths = {2, 3},
       .has_initial = true,
       .has_peepholes = true,
       .attributes = both_batch_first},
      {.name = "one", .steps = 1, .batch = 1, .input = 1, .hidden = 1},
      {.name = "no_steps", .steps = 0, .has_initial = true},
      {.name = "no_samples", .batch = 0},
      {.name = "no_input", .input = 0},
      {.name = "odd", .steps = 4, .batch = 3, .input = 7, .hidden = 17, .has_initial = true},
      {.name = "over_threads", .steps = 2, .batch = 67, .input = 5, .hidden = 65},
      {.name = "clip", .has_initial = true, .attributes = {{"clip", 0.4F}}},
  };
}

std::vector<Call> lstm_calls() {
  std::vector<Call> calls = common_calls();
  calls.push_back({.name = "coupled",
                   .has_initial = true,
                   .has_peepholes = true,
                   .attributes = {{"input_forget", 1}}});
  calls.push_back({.name = "listed",
                   .has_peepholes = true,
                   .attributes = {{"direction", "bidirectional"},
                                  {"activations", texts({"HardSigmoid", "Affine", "ScaledTanh",
                                                         "Sigmoid", "Softsign", "LeakyRelu"})},
                                  {"activation_alpha", std::vector<float>{0.3F, 0.7F, 1.1F}},
                                  {"activation_beta", std::vector<float>{0.4F, 0.1F, 0.8F}}}});
  return calls;
}

std::vector<Call> gru_calls() {
  std::vector<Call> calls = common_calls();
  for (Call call : common_calls()) {
    call.name += "_linear";
    call.attributes.set({"linear_before_reset", 1});
    calls.push_back(std::move(call));
  }
  for (const int linear : {0, 1}) {
    calls.push_back({.name = linear == 0 ? "listed" : "listed_linear",
                     .has_initial = true,
                     .attributes = {{"activations", texts({"HardSigmoid", "Softplus"})},
                                    {"activation_alpha", std::vector<float>{0.3F}},
                                    {"activation_beta", std::vector<float>{0.4F}},
                                    {"linear_before_reset", linear}}});
  }
  return calls;
}

std::vector<Call> rnn_calls() {
  std::vector<Call> calls = common_calls();
  for (const char* function : {"Sigmoid", "Relu", "Affine", "LeakyRelu", "ThresholdedRelu",
                               "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"}) {
    Call call{.name = function, .attributes = {{"activations", texts({function})}}};
    if (call.name == "ThresholdedRelu") {
      call.attributes.set({"activation_alpha", std::vector<float>{0.2F}});
    }
    if (call.name == "ScaledTanh") {
      call.attributes.set({"activation_alpha", std::vector<float>{1.3F}});
      call.attributes.set({"activation_beta", std::vector<float>{0.6F}});
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

std::vector<Call> calls_of(RecurrentKind kind) {
  switch (kind) {
    case RecurrentKind::lstm:
      return lstm_calls();
    case RecurrentKind::gru:
      return gru_calls();
    case RecurrentKind::rnn:
      break;
  }
  return rnn_calls();
}

int outputs_of(RecurrentKind kind) {
  return kind == RecurrentKind::lstm ? 3 : 2;
}

}  // namespace

std::vector<Sample> recurrent_samples(RecurrentKind kind) {
  std::vector<Sample> samples;
  for (const Call& call : calls_of(kind)) {
    samples.push_back(forward_sample(kind, call, call.all_outputs ? outputs_of(kind) : 1));
  }
  return samples;
}

std::vector<Sample> recurrent_training_samples(RecurrentKind kind) {
  std::vector<Sample> samples;
  for (const Call& call : calls_of(kind)) {
    // Elements behind the end of a sequence hold no gates.
    samples.push_back(forward_sample(kind, call, outputs_of(kind) + 2));
    samples.back().no_gradient_check = "kept gates and states pass no gradient on";
  }
  return samples;
}

std::vector<Sample> recurrent_grad_samples(RecurrentKind kind) {
  std::vector<Sample> samples;
  const bool has_c = kind == RecurrentKind::lstm;
  for (const Call& call : calls_of(kind)) {
    const std::int64_t directions = directions_of(call);
    const bool is_linear = call.attributes.get_int("linear_before_reset", 0) != 0;
    const std::int64_t slots = gates_of(kind) + (is_linear ? 1 : 0);
    Sample sample = forward_sample(kind, call, has_c ? 7 : 5);
    const SampleInput peepholes = has_c ? sample.inputs[7] : absent();
    const bool has_last = call.has_initial;
    sample.inputs.resize(3);
    sample.inputs.insert(
        sample.inputs.end(),
        {lengths_of(call), peepholes,
         SampleInput{.shape = {directions, call.steps * call.batch, slots * call.hidden},
                     .low = 0.1,
                     .high = 0.9},
         recurrent_input({directions, has_c ? 2 : 1, call.steps + 1, call.batch, call.hidden}),
         call.name == "states" ? absent() : y_of(call), has_last ? state_of(call) : absent(),
         has_last && has_c ? state_of(call) : absent()});
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace graft

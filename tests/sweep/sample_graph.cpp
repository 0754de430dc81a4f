#include "tests/sweep/sample_graph.h"

#include <algorithm>
#include <numeric>

#include "core/base/rng.h"
#include "core/ops/builder.h"
#include "core/ops/f32_twin.h"

namespace graft::test {
namespace {

/// Numbers on an even grid, shuffled: no two are near each other.
std::vector<double> grid(std::int64_t size, double low, double high, const Philox& random) {
  std::vector<double> values(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    values[static_cast<std::size_t>(i)] =
        low + (high - low) * (static_cast<double>(i) + 0.5) / static_cast<double>(size);
  }
  shuffle(values.begin(), values.end(), random);
  return values;
}

std::vector<double> numbers(const SampleInput& input, std::uint64_t stream) {
  if (!input.values.empty()) return input.values;
  const Philox random(20240229, stream);
  if (input.distinct) return grid(input.shape.size(), input.low, input.high, random);
  std::vector<double> values(static_cast<std::size_t>(input.shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = input.low + (input.high - input.low) * random.uniform_double(i);
  }
  return values;
}

Tensor make_tensor(const SampleInput& input, std::uint64_t stream, DType float_type,
                   DType rounded) {
  Tensor tensor = Tensor::from(input.shape, numbers(input, stream)).cast(DType::f32);
  const bool under_test = input.dtype == DType::f32;
  if (input.keeps_f32) {
    const auto kept = [](DType type) { return is_short_float(type) ? DType::f32 : type; };
    float_type = kept(float_type);
    rounded = kept(rounded);
  }
  if (!under_test && is_integer(input.dtype)) {
    tensor = Tensor::from(input.shape, numbers(input, stream));  // f32 would round large integers
  }
  return under_test ? tensor.cast(rounded).cast(float_type) : tensor.cast(input.dtype);
}

}  // namespace

SampleGraph make_sample_graph(const OpDef& def, const Sample& sample, DType float_type,
                              DType rounded) {
  SampleGraph result;
  result.graph = std::make_unique<Graph>("sample");
  std::vector<Value*> values;
  for (std::size_t i = 0; i < sample.inputs.size(); ++i) {
    const SampleInput& input = sample.inputs[i];
    if (input.is_absent) {
      values.push_back(nullptr);
      result.node_inputs.emplace_back();
      continue;
    }
    const Tensor tensor = make_tensor(input, i, float_type, rounded);
    result.node_inputs.push_back(tensor);
    const std::string name = "x" + std::to_string(i);
    if (input.is_constant) {
      values.push_back(result.graph->add_initializer(name, tensor));
      continue;
    }
    values.push_back(result.graph->add_input(name, {tensor.dtype(), SymShape(tensor.shape())}));
    if (input.dtype == DType::f32) {
      result.float_inputs.push_back(static_cast<int>(result.graph_inputs.size()));
    }
    result.graph_inputs.push_back(tensor);
  }
  Builder builder(*result.graph);
  result.node = builder.node(def.name, def.domain, values, sample.outputs, sample.attributes);
  for (int i = 0; i < result.node->output_count(); ++i) {
    result.graph->add_output(result.node->output(i));
  }
  return result;
}

std::optional<SampleGraph> short_sample_graph(const OpDef& def, const Sample& sample, DType type) {
  try {
    return make_sample_graph(def, sample, type, type);
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool has_floats(const SampleGraph& sample) {
  return std::ranges::any_of(sample.node_inputs,
                             [](const Tensor& t) { return t.defined() && is_float(t.dtype()); });
}

}  // namespace graft::test

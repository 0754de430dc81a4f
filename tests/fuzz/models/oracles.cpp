#include "tests/fuzz/models/oracles.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/passes/pass.h"
#include "core/runtime/node_call.h"
#include "core/runtime/program.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

/// A graph that has come to more than this has said enough.
constexpr std::int64_t kMostElements = 1 << 17;

bool has_numbers(const Tensor& tensor) {
  return tensor.defined() && is_float(tensor.dtype());
}

void note_numbers(const Datum& datum, Outcome& outcome) {
  if (!datum.is_tensor() || !has_numbers(datum.tensor())) return;
  for (const double value : to_double(datum.tensor())) {
    if (std::isfinite(value)) {
      outcome.largest = std::max(outcome.largest, std::abs(value));
      if (value != 0) outcome.smallest = std::min(outcome.smallest, std::abs(value));
    } else {
      outcome.is_finite = false;
    }
  }
}

bool same_number(double a, double b, double allowed) {
  return std::abs(a - b) <= allowed || a == b || (std::isnan(a) && std::isnan(b));
}

/// Of floats: equal but for `allowed`. All else must be equal.
bool same(const Tensor& a, const Tensor& b, double allowed) {
  if (a.defined() != b.defined() || a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (!a.defined()) return true;
  if (a.dtype() == DType::string) return a.strings() == b.strings();
  if (!has_numbers(a)) return equal_bits(a, b);
  const std::vector<double> of_a = to_double(a);
  const std::vector<double> of_b = to_double(b);
  return std::ranges::equal(of_a, of_b,
                            [&](double x, double y) { return same_number(x, y, allowed); });
}

bool same(const Datum& a, const Datum& b, double allowed) {
  if (!a.is_tensor() || !b.is_tensor()) return a.is_tensor() == b.is_tensor();
  return same(a.tensor(), b.tensor(), allowed);
}

/// "output 1: f32[2] {1, 2}, not f32[2] {1, 3}".
std::string difference(std::size_t index, const Datum& a, const Datum& b) {
  const auto shown = [](const Datum& datum) {
    if (!datum.is_tensor()) return describe(datum);
    std::string text = describe(datum.tensor());
    if (!visit_dtype(AllTypes{}, datum.tensor().dtype(), []<class T>() {})) return text;
    const std::vector<double> values = to_double(datum.tensor());
    for (std::size_t i = 0; i < std::min<std::size_t>(values.size(), 16); ++i) {
      text += " " + graft::text(values[i]);
    }
    return text;
  };
  return "output " + std::to_string(index) + ": " + shown(a) + ", not " + shown(b);
}

void require_same(const Outcome& a, const Outcome& b, double allowed, const std::string& what) {
  require(a.results.size() == b.results.size(), what + ": another number of outputs");
  for (std::size_t i = 0; i < a.results.size(); ++i) {
    require(same(a.results[i], b.results[i], allowed),
            what + ": " + difference(i, a.results[i], b.results[i]));
  }
}

void refuse_large(const Shape& shape) {
  if (shape.size() > kMostElements) fail(ErrorKind::memory, "too large for a fuzzer: ", shape);
}

void run_node(const Node& node, std::unordered_map<const Value*, Datum>& data, Outcome& outcome) {
  for (int i = 0; i < node.output_count(); ++i) {
    const Value* const output = node.output(i);
    if (output == nullptr || !output->shape()) continue;
    if (const auto shape = output->shape()->known()) refuse_large(*shape);
  }
  const NodeCall call = make_call(node);
  std::vector<Datum> arguments;
  for (const Value* read : call.reads) {
    arguments.push_back(read == nullptr ? Datum() : data.at(read));
  }
  const std::vector<Datum> made = call.run(arguments);
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Value* const output = node.output(static_cast<int>(i));
    if (output == nullptr) continue;
    if (made[i].is_tensor()) refuse_large(made[i].tensor().shape());
    note_numbers(made[i], outcome);
    data[output] = made[i];
  }
}

Datum converted(const Datum& datum, DType from, DType to) {
  const bool is_meant = datum.is_tensor() && datum.tensor().dtype() == from;
  return is_meant ? Datum(datum.tensor().cast(to)) : datum;
}

/// One after the other, of what `given` makes of initializers and inputs.
template <class Given>
Outcome run_nodes(const Graph& graph, const std::vector<Datum>& inputs, const Given& given) {
  Outcome outcome;
  std::unordered_map<const Value*, Datum> data;
  for (const Value* value : graph.initializers()) data[value] = given(value->initializer());
  const std::vector<Value*> required = passes::required_inputs(graph);
  for (std::size_t i = 0; i < required.size(); ++i) data[required[i]] = given(inputs[i]);
  Outcome before;  // what is large or infinite there, a mask, may do no harm
  for (const auto& [value, datum] : data) note_numbers(datum, before);
  outcome.smallest = before.smallest;
  outcome.largest_given = before.largest;
  outcome.succeeded = succeeds([&] {
    for (const auto& node : graph.nodes()) run_node(*node, data, outcome);
    for (const Value* output : graph.outputs()) outcome.results.push_back(data.at(output));
  });
  return outcome;
}

}  // namespace

bool same_bits(const Tensor& a, const Tensor& b) {
  return same(a, b, 0.0);
}

Outcome run_planned(const Graph& graph, const std::vector<Datum>& inputs,
                    const PlanOptions& options) {
  Outcome outcome;
  outcome.succeeded = succeeds([&] {
    try {
      Program program(graph.clone(), options);
      outcome.results = program.run(inputs);
      Outcome again{.succeeded = true, .results = program.run(inputs)};
      require_same(outcome, again, 0.0, "the second run");
    } catch (const Error& error) {
      outcome.lacks_memory = error.kind() == ErrorKind::memory;
      throw;
    }
  });
  return outcome;
}

Outcome run_unplanned(const Graph& graph, const std::vector<Datum>& inputs) {
  return run_nodes(graph, inputs, [](const Datum& datum) { return datum; });
}

Outcome run_in_f64(const Graph& graph, const std::vector<Datum>& inputs, const Outcome& like) {
  Outcome outcome = run_nodes(
      graph, inputs, [](const Datum& datum) { return converted(datum, DType::f32, DType::f64); });
  for (std::size_t i = 0; i < std::min(outcome.results.size(), like.results.size()); ++i) {
    const Datum& wanted = like.results[i];
    if (!wanted.is_tensor() || wanted.tensor().dtype() != DType::f32) continue;
    outcome.results[i] = converted(outcome.results[i], DType::f64, DType::f32);
  }
  return outcome;
}

void require_same_bits(const Outcome& a, const Outcome& b, const std::string& what) {
  require(a.succeeded == b.succeeded, what + (a.succeeded ? ": fails" : ": succeeds"));
  require_same(a, b, 0.0, what);
}

void require_near(const Outcome& a, const Outcome& b, const std::string& what) {
  constexpr double kRelative = 1e-3;
  if (!a.succeeded || !b.succeeded || !b.is_tame()) return;
  require_same(a, b, kRelative * (1.0 + b.largest), what);
}

}  // namespace graft::fuzz

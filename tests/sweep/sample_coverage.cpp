#include "tests/sweep/sample_coverage.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <functional>

#include "core/base/error.h"
#include "core/ops/registry.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {
namespace {

/// The library's names, in whatever namespace it was built with.
namespace pb = ONNX_NAMESPACE;

using Dims = std::vector<std::int64_t>;
constexpr const char* kLeftOut = "(left out)";

std::vector<ValueType> output_types(const Node& node) {
  std::vector<ValueType> types;
  for (int i = 0; i < node.output_count(); ++i) {
    types.push_back(node.output(i) == nullptr ? ValueType() : node.output(i)->type());
  }
  return types;
}

/// Whether inference gives the same outputs with another shape for input `index`; nothing where it
/// refuses it.
std::optional<bool> keeps_outputs(const SampleGraph& built, int index, Dims dims) {
  Value* const input = built.node->input(index);
  const ValueType before = input->type();
  const std::vector<ValueType> wanted = output_types(*built.node);
  std::optional<bool> result;
  try {
    input->set_type({before.dtype, SymShape(Shape(std::move(dims)))});
    infer(*built.node);
    result = output_types(*built.node) == wanted;
  } catch (const Error&) {  // refused: no result
  }
  input->set_type(before);
  infer(*built.node);
  return result;
}

Dims with_dim(Dims dims, std::size_t axis, std::int64_t size) {
  dims[axis] = size;
  return dims;
}

/// Calls f(built, index, dims) for each input that is data; the inputs for which it is true.
std::set<int> inputs_where(
    const OpDef& def, const std::vector<Sample>& samples,
    const std::function<bool(const SampleGraph&, int, const Dims&)>& matches) {
  std::set<int> found;
  for (const Sample& sample : samples) {
    const SampleGraph built = make_sample_graph(def, sample, DType::f64);
    for (int i = 0; i < built.node->input_count(); ++i) {
      const Value* const input = built.node->input(i);
      if (input == nullptr || input->is_initializer()) continue;
      if (matches(built, i, input->known_shape().dims())) found.insert(i);
    }
  }
  return found;
}

bool may_become_one(const SampleGraph& built, int index, const Dims& dims) {
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] > 1 && keeps_outputs(built, index, with_dim(dims, axis, 1)) == true &&
        !keeps_outputs(built, index, with_dim(dims, axis, dims[axis] + 1))) {
      return true;
    }
  }
  return false;
}

/// The sizes over 1 that a dim which is broadcast may meet.
std::set<std::int64_t> other_sizes(const SampleGraph& built) {
  std::set<std::int64_t> sizes;
  for (const Tensor& input : built.node_inputs) {
    if (!input.defined()) continue;
    for (const std::int64_t dim : input.shape()) {
      if (dim > 1) sizes.insert(dim);
    }
  }
  return sizes;
}

bool is_broadcast(const SampleGraph& built, int index, const Dims& dims) {
  Dims longer = dims;
  longer.insert(longer.begin(), 1);
  for (const std::int64_t size : other_sizes(built)) {
    for (std::size_t axis = 0; axis < longer.size(); ++axis) {
      if (longer[axis] != 1) continue;
      const bool is_own = axis > 0;
      const auto widened = [&](std::int64_t to) {
        return is_own ? with_dim(dims, axis - 1, to) : with_dim(longer, 0, to);
      };
      if (keeps_outputs(built, index, widened(size)) == true &&
          !keeps_outputs(built, index, widened(size + 1))) {
        return true;
      }
    }
  }
  return false;
}

template <class T>
std::string list_text(const std::vector<T>& values) {
  std::string result = "[";
  for (const T& value : values) result += text(result.size() > 1 ? "," : "", value);
  return result + "]";
}

std::string ops_text(const Graph& graph) {
  std::string result;
  for (const auto& node : graph.nodes()) result += node->op_type() + " ";
  return result;
}

std::string value_text(const AttributeValue& value) {
  return std::visit(
      []<class T>(const T& held) -> std::string {
        if constexpr (requires(std::string & to) { append_text(to, held); }) {
          return text(held);
        } else if constexpr (requires(std::string & to) { append_text(to, held.front()); }) {
          return list_text(held);
        } else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>) {
          return ops_text(*held);
        } else {
          return "(an object)";
        }
      },
      value);
}

const pb::OpSchema* schema_of(const OpDef& def) {
  return pb::OpSchemaRegistry::Schema(std::string(def.name), def.newest(), std::string(def.domain));
}

std::string default_text(const OpDef& def, const std::string& attribute) {
  const pb::OpSchema* const schema = schema_of(def);
  if (schema == nullptr) return kLeftOut;
  const auto at = schema->attributes().find(attribute);
  if (at == schema->attributes().end()) return kLeftOut;
  const pb::AttributeProto& value = at->second.default_value;
  if (value.has_i()) return text(value.i());
  if (value.has_f()) return text(value.f());
  if (value.has_s()) return value.s();
  if (value.ints_size() > 0) return list_text(Dims(value.ints().begin(), value.ints().end()));
  return kLeftOut;
}

}  // namespace

SampleCoverage::SampleCoverage(const OpDef& def) : def_(def), all_(def.samples()) {
  for (const Sample& sample : all_) {
    if (sample.no_gradient_check.empty() &&
        !make_sample_graph(def, sample, DType::f64).float_inputs.empty()) {
      checked_.push_back(sample);
    }
  }
  if (checked_.empty()) checked_ = all_;
}

bool SampleCoverage::has_dim(std::int64_t size) const {
  const auto matches = [size](const SampleGraph&, int, const Dims& dims) {
    return std::ranges::find(dims, size) != dims.end();
  };
  return !inputs_where(def_, checked_, matches).empty();
}

std::set<int> SampleCoverage::broadcastable() const {
  return inputs_where(def_, all_, may_become_one);
}

std::set<int> SampleCoverage::broadcast() const {
  return inputs_where(def_, checked_, is_broadcast);
}

std::set<std::string> SampleCoverage::values(const AttributeDef& attribute) const {
  const std::string name(attribute.name);
  std::set<std::string> found;
  for (const Sample& sample : checked_) {
    const Attribute* const set = sample.attributes.find(name);
    found.insert(set == nullptr ? default_text(def_, name) : value_text(set->value));
  }
  return found;
}

bool is_current(const OpDef& def, std::string_view attribute) {
  const pb::OpSchema* const schema = schema_of(def);
  return schema == nullptr || schema->attributes().contains(std::string(attribute));
}

}  // namespace graft::test

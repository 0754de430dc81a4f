// Nodes that come from the samples of rows, and attributes as rows list them.
#include <algorithm>
#include <limits>

#include "core/ops/infer.h"
#include "core/ops/registry.h"
#include "tests/fuzz/models/mutate.h"
#include "tests/fuzz/target.h"
#include "tests/sweep/sample_graph.h"

namespace graft::fuzz {
namespace {

/// Rows in whose form a node of this model may stand.
std::vector<const OpDef*> rows_for(const Model& model) {
  std::vector<const OpDef*> rows;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.domain == kInternalDomain || def.since.empty()) continue;
    const std::int64_t opset = model.opset(def.domain);
    if (opset == 0 ? def.domain.empty() : def.newest() > opset) continue;
    rows.push_back(&def);
  }
  return rows;
}

/// A value of the type of `like`, of the same shape in most cases; null if there is none.
Value* matching(const Graph& graph, const Tensor& like, Random& random) {
  std::vector<Value*> same;
  std::vector<Value*> others;
  const auto consider = [&](Value* value) {
    if (value == nullptr || value->dtype() != like.dtype() || value->type().is_container) return;
    const bool fits = value->shape() && *value->shape() == SymShape(like.shape());
    (fits ? same : others).push_back(value);
  };
  for (Value* input : graph.inputs()) consider(input);
  for (const auto& node : graph.nodes()) consider(node->output(0));
  if (!same.empty() && !random.one_in(4)) return random.of(same);
  return others.empty() ? nullptr : random.of(others);
}

Value* new_input(Graph& graph, const Tensor& like, bool is_constant, Random& random) {
  if (is_constant || random.one_in(3)) {
    return graph.add_initializer(graph.unique_name("w"), like);
  }
  return graph.add_input(graph.unique_name("x"), {like.dtype(), SymShape(like.shape())});
}

template <class T>
T change_number(T old, std::initializer_list<T> choices, Random& random) {
  const std::size_t which = random.below(choices.size() + 2);
  if (which < choices.size()) return choices.begin()[which];
  // Unsigned, as the largest number has no next.
  return which == choices.size() ? old : static_cast<T>(-old);
}

std::int64_t any_integer(std::int64_t old, Random& random) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (random.one_in(16)) return random.one_in(2) ? kMost : -kMost - 1;
  if (random.one_in(16))
    return (std::int64_t{1} << (20 + random.below(43))) - (random.one_in(2) ? 1 : 0);
  return change_number<std::int64_t>(std::clamp<std::int64_t>(old, -kMost, kMost),
                                     {0, 1, -1, 2, 3, 4, -2, 5, 7}, random);
}

float any_float(float old, Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return change_number<float>(
      old, {0.0F, 1.0F, 0.5F, 2.0F, 1e-5F, 1e-30F, 1e30F, kInfinity, kInfinity - kInfinity},
      random);
}

template <class T, class Change>
std::vector<T> change_list(std::vector<T> list, const Change& change, Random& random) {
  const auto at = static_cast<std::ptrdiff_t>(random.below(list.size()));
  if (list.empty() || random.one_in(6)) {
    list.insert(list.begin() + at, change(T{}));
  } else if (random.one_in(6)) {
    list.erase(list.begin() + at);
  } else {
    list[static_cast<std::size_t>(at)] = change(list[static_cast<std::size_t>(at)]);
  }
  return list;
}

/// What a sample of the op gives the attribute; null if none does.
const Attribute* of_a_sample(const std::vector<Sample>& samples, std::string_view name,
                             Random& random) {
  std::vector<const Attribute*> found;
  for (const Sample& sample : samples) {
    if (const Attribute* attribute = sample.attributes.find(name)) found.push_back(attribute);
  }
  return found.empty() ? nullptr : random.of(found);
}

void change_value(Node& node, const AttributeDef& def, Random& random) {
  Attributes& all = node.attributes;
  const auto integer = [&](std::int64_t old) { return any_integer(old, random); };
  const auto number = [&](float old) { return any_float(old, random); };
  switch (def.type) {
    case AttributeType::integer:
      return all.set({def.name, integer(all.get_int(def.name, 0))});
    case AttributeType::number:
      return all.set({def.name, number(all.get_float(def.name, 0))});
    case AttributeType::integers:
      return all.set({def.name, change_list(all.get_ints(def.name), integer, random)});
    case AttributeType::numbers:
      return all.set({def.name, change_list(all.get_floats(def.name), number, random)});
    case AttributeType::text:
      return all.set({def.name, ""});
    case AttributeType::texts:
    case AttributeType::tensor:
    case AttributeType::graph:
      return;  // those of samples alone
  }
}

}  // namespace

void add_random_node(Model& model, Random& random) {
  Graph& graph = model.graph();
  const OpDef& def = *random.of(rows_for(model));
  const std::vector<Sample> samples = def.samples();
  if (samples.empty()) return;
  const Sample& sample = random.of(samples);
  const test::SampleGraph made = test::make_sample_graph(def, sample, DType::f32);
  std::vector<Value*> inputs;
  for (std::size_t i = 0; i < made.node_inputs.size(); ++i) {
    const Tensor& like = made.node_inputs[i];
    Value* value = nullptr;
    if (like.defined()) {
      const bool is_constant = sample.inputs[i].is_constant;
      if (!is_constant && !random.one_in(4)) value = matching(graph, like, random);
      if (value == nullptr) value = new_input(graph, like, is_constant, random);
    }
    inputs.push_back(value);
  }
  if (model.opset(def.domain) == 0) model.set_opset(std::string(def.domain), def.newest());
  std::vector<std::string> outputs;
  for (int i = 0; i < sample.outputs; ++i) outputs.push_back(graph.unique_name(text("y", i, "_")));
  Node* const node = graph.add_node(def.name, def.domain, inputs, outputs, sample.attributes);
  succeeds_quietly([&] { infer(*node); });
  graph.add_output(node->output(0));
}

void change_attribute(Graph& graph, Random& random) {
  std::vector<std::pair<Node*, const OpDef*>> nodes;
  for (const auto& node : graph.nodes()) {
    const OpDef* const def = OpRegistry::instance().find(*node);
    if (def != nullptr && !def->attributes.empty()) nodes.emplace_back(node.get(), def);
  }
  if (nodes.empty()) return;
  const auto [node, def] = random.of(nodes);
  const AttributeDef& attribute = random.of(def->attributes);
  if (attribute.type == AttributeType::graph) return;
  if (!attribute.required && random.one_in(4)) return node->attributes.erase(attribute.name);
  const std::vector<Sample> samples = def->samples();
  const Attribute* const given = of_a_sample(samples, attribute.name, random);
  if (given != nullptr && random.one_in(2)) return node->attributes.set(*given);
  change_value(*node, attribute, random);
}

}  // namespace graft::fuzz

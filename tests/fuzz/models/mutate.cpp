#include "tests/fuzz/models/mutate.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/graph/verify.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"
#include "io/onnx.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

constexpr std::size_t kMostNodes = 24;

/// Small dims that meet most branches: nothing, one, odd, even, more than a vector has lanes.
constexpr std::int64_t kDims[] = {0, 1, 1, 2, 2, 3, 4, 5, 8, 17, 33};

std::int64_t any_dim(Random& random) {
  return kDims[random.below(std::size(kDims))];
}

/// One axis without elements and another of any length: what is counted with it may overflow.
void make_hollow(std::vector<std::int64_t>& dims, Random& random) {
  if (dims.size() < 2) return;
  dims[random.below(dims.size())] = std::int64_t{1} << (16 + random.below(47));
  dims[random.below(dims.size())] = 0;
}

/// Those that a node of the graph may read, up to `before`.
std::vector<Value*> values_before(const Graph& graph, const Node* before) {
  std::vector<Value*> values(graph.inputs());
  for (Value* value : graph.initializers()) {
    if (!value->is_graph_input()) values.push_back(value);
  }
  for (const auto& node : graph.nodes()) {
    if (node.get() == before) break;
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr) values.push_back(node->output(i));
    }
  }
  return values;
}

void infer_all(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    succeeds_quietly([&] { infer(*node); });
  }
}

Node* any_node(const Graph& graph, Random& random) {
  if (graph.nodes().empty()) return nullptr;
  auto at = graph.nodes().begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random.below(graph.node_count())));
  return at->get();
}

Tensor filled(DType dtype, const Shape& shape, Random& random) {
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (double& value : values) value = 4 * random.uniform() - 1;
  return Tensor::from(shape, values).cast(dtype);
}

bool can_be_filled(DType dtype) {
  return visit_dtype(AllTypes{}, dtype, []<class T>() {});
}

/// Another tensor in its place, for all readers.
void replace_initializer(Graph& graph, Value* old, const Tensor& tensor) {
  Value* const changed = graph.add_initializer(graph.unique_name(old->name()), tensor);
  graph.replace_all_uses(old, changed);
  graph.remove_initializer(old);
}

/// A dim of an input or an initializer.
void change_dim(Graph& graph, Random& random) {
  const std::vector<Value*> values = values_before(graph, nullptr);
  if (values.empty()) return;
  Value* const value = random.of(values);
  if (value->producer() != nullptr || !value->shape() || value->shape()->rank() == 0) return;
  SymShape shape = *value->shape();
  const int axis = static_cast<int>(random.below(static_cast<std::size_t>(shape.rank())));
  if (value->is_initializer()) {
    if (value->is_graph_input() || !can_be_filled(value->dtype())) return;
    std::vector<std::int64_t> dims = value->initializer().shape().dims();
    dims[static_cast<std::size_t>(axis)] = any_dim(random);
    if (random.one_in(8)) make_hollow(dims, random);
    const Shape changed(dims);
    if (changed.size() < 4096) {
      replace_initializer(graph, value, filled(value->dtype(), changed, random));
    }
    return;
  }
  shape[axis] = random.one_in(4) ? Dim("N") : random.one_in(8) ? Dim() : Dim(any_dim(random));
  const std::optional<Shape> known = random.one_in(8) ? shape.known() : std::nullopt;
  if (known) {
    std::vector<std::int64_t> dims = known->dims();
    make_hollow(dims, random);
    shape = Shape(dims);
  }
  value->set_type({value->dtype(), shape});
}

/// An element type of an input or an initializer.
void change_type(Graph& graph, Random& random) {
  constexpr DType kTypes[] = {DType::f32, DType::f64,     DType::f16, DType::bf16, DType::i64,
                              DType::i32, DType::boolean, DType::u8,  DType::i8};
  const std::vector<Value*> values = values_before(graph, nullptr);
  if (values.empty()) return;
  Value* const value = random.of(values);
  const DType wanted = kTypes[random.below(std::size(kTypes))];
  if (value->producer() != nullptr || value->type().is_container) return;
  if (!value->is_initializer()) return value->set_type({wanted, value->shape()});
  if (value->is_graph_input() || !can_be_filled(value->dtype())) return;
  replace_initializer(graph, value, value->initializer().cast(wanted));
}

/// Elements of an initializer: shapes and axes are some.
void change_elements(Graph& graph, Random& random) {
  std::vector<Value*> values;
  for (Value* value : graph.initializers()) {
    if (!value->is_graph_input() && can_be_filled(value->dtype())) values.push_back(value);
  }
  if (values.empty()) return;
  Value* const value = random.of(values);
  std::vector<double> elements = to_double(value->initializer());
  if (elements.empty()) return;
  constexpr double kNumbers[] = {0, -0.0, 1, -1, 2, 3, -2, 0.5, 7, 16, 1e-30, 1e9, -1e9, 1e300};
  elements[random.below(elements.size())] = kNumbers[random.below(std::size(kNumbers))];
  const Tensor changed = Tensor::from(value->initializer().shape(), elements);
  replace_initializer(graph, value, changed.cast(value->dtype()));
}

/// What a node reads.
void change_wiring(Graph& graph, Random& random) {
  Node* const node = any_node(graph, random);
  if (node == nullptr || node->input_count() == 0) return;
  const int index = static_cast<int>(random.below(static_cast<std::size_t>(node->input_count())));
  const Value* const old = node->input(index);
  std::vector<Value*> values = values_before(graph, node);
  std::erase_if(values, [&](const Value* value) {
    return value->type().is_container || (old != nullptr && old->dtype() != value->dtype());
  });
  if (!values.empty()) node->set_input(index, random.of(values));
}

void set_output(Graph& graph, Random& random) {
  std::vector<Value*> outputs = graph.outputs();
  if (outputs.size() > 1 && random.one_in(2)) {
    outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(random.below(outputs.size())));
  } else if (const Node* node = any_node(graph, random); node != nullptr) {
    Value* const value = node->output(0);
    if (value != nullptr && std::ranges::find(outputs, value) == outputs.end()) {
      outputs.push_back(value);
    }
  }
  graph.set_outputs(outputs);
}

/// The last nodes go, and others that nobody reads.
void remove_nodes(Graph& graph, std::size_t wanted) {
  while (graph.node_count() > wanted) {
    Node* const node = graph.nodes().back().get();
    std::vector<Value*> outputs = graph.outputs();
    std::erase_if(outputs, [&](const Value* value) { return value->producer() == node; });
    graph.set_outputs(outputs);
    graph.remove(node);
  }
}

/// A file states the type of each output, and has at least one.
void settle_outputs(Model& model, Random& random) {
  Graph& graph = model.graph();
  infer_all(graph);
  std::vector<Value*> outputs = graph.outputs();
  std::erase_if(outputs, [](const Value* value) {
    return value->dtype() == DType::undefined && !value->type().is_container;
  });
  if (outputs.empty()) {
    const Node* const node = graph.nodes().empty() ? nullptr : graph.nodes().back().get();
    if (node != nullptr && node->output(0) != nullptr) {
      Value* const value = node->output(0);
      if (value->dtype() == DType::undefined) value->set_type({DType::f32, {}});
      outputs.push_back(value);
    }
  }
  graph.set_outputs(outputs);
  if (outputs.empty()) add_random_node(model, random);
}

/// That of a body at times.
Graph& any_graph(Model& model, Random& random) {
  Graph* chosen = &model.graph();
  if (random.one_in(4)) {
    for (const auto& node : model.graph().nodes()) {
      for_each_body(*node, [&](Graph& body) {
        if (random.one_in(2)) chosen = &body;
      });
    }
  }
  return *chosen;
}

void change_once(Model& model, Random& random) {
  Graph& graph = model.graph();
  switch (random.below(10)) {
    case 0:
    case 1:
    case 2:
      return add_random_node(model, random);
    case 3:
    case 4:
      return change_attribute(any_graph(model, random), random);
    case 5:
      return change_dim(graph, random);
    case 6:
      return change_type(graph, random);
    case 7:
      return change_elements(any_graph(model, random), random);
    case 8:
      return change_wiring(any_graph(model, random), random);
    default:
      return set_output(graph, random);
  }
}

std::optional<Model> parsed(std::string_view bytes) {
  std::optional<Model> model;
  succeeds_quietly([&] { model = onnx::parse(bytes); });
  return model;
}

}  // namespace

std::string mutate_model(std::string_view bytes, std::uint64_t seed) {
  Random random(seed);
  std::optional<Model> model = parsed(bytes);
  if (!model) {
    model.emplace();
    model->set_opset("", kNewestOpset);
  }
  infer_all(model->graph());
  std::string mutant;
  succeeds_quietly([&] {
    if (model->graph().nodes().empty()) add_random_node(*model, random);
    if (model->graph().node_count() > kMostNodes) {
      remove_nodes(model->graph(), random.below(kMostNodes));
    }
    const std::size_t changes = 1 + random.below(3);
    for (std::size_t i = 0; i < changes; ++i) change_once(*model, random);
    settle_outputs(*model, random);
    verify(*model);
    mutant = onnx::serialize(*model);
  });
  return mutant;
}

}  // namespace graft::fuzz

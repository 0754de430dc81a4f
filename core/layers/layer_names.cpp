#include "core/layers/layer_names.h"

#include <algorithm>

#include "core/graph/reads.h"

namespace graft::edit {
namespace {

void drop_suffix(std::string& name, std::string_view suffix) {
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
}

/// "fc1" for "fc1.weight", and for what quantization makes of that name; empty for other names.
std::string layer_of_weight(std::string name) {
  for (const std::string_view suffix : {"_quantized", "_Q4", "_Q8"}) drop_suffix(name, suffix);
  const std::size_t size = name.size();
  drop_suffix(name, ".weight");
  if (name.size() == size) return {};
  for (const std::string_view suffix : {".MatMul", ".Gemm", ".Conv"}) drop_suffix(name, suffix);
  return name;
}

/// "fc1" where the result gets "fc1.bias", as a layer without a name of its own weight does.
std::string layer_of_bias(const Node& node) {
  const Value* const result = node.output();
  if (result == nullptr) return {};
  for (const Use& use : result->uses()) {
    if (!use.node->is("Add")) continue;
    const Value* const other = use.node->input(1 - use.index);
    std::string name = other != nullptr && other->is_initializer() ? other->name() : "";
    const std::size_t size = name.size();
    drop_suffix(name, ".bias");
    if (name.size() < size) return name;
  }
  return {};
}

/// "encoder.fc1" for the node "/encoder/fc1/MatMul".
std::string layer_of_node(const Node& node) {
  std::string name = node.name();
  const std::size_t slash = name.rfind('/');
  const std::string op = node.op_type().starts_with("MatMul") ? "MatMul" : node.op_type();
  if (slash != name.npos && slash > 0 && name.substr(slash + 1).starts_with(op)) {
    name.resize(slash);
  }
  if (name.starts_with('/')) name.erase(0, 1);
  std::ranges::replace(name, '/', '.');
  return name;
}

}  // namespace

Value* origin_of(Value* value) {
  while (value != nullptr && !value->is_initializer()) {
    Node* const node = value->producer();
    if (node == nullptr) return nullptr;
    if (node->is("Constant")) return value;
    if (node->is("Concat") || !only_rearranges({node, 0})) return nullptr;
    value = node->input(0);
  }
  return value;
}

std::string layer_name(const Node& node, const std::string& weight) {
  for (const std::string& name :
       {layer_of_weight(weight), layer_of_bias(node), layer_of_node(node)}) {
    if (!name.empty()) return name;
  }
  return weight;
}

bool is_weighted(const Node& node) {
  return node.is("MatMul") || node.is("Gemm") || node.is("Conv") ||
         node.is("MatMulNBits", "com.microsoft");
}

Node* insert_behind(Value* value, std::string_view op, const std::vector<Value*>& others,
                    const std::string& new_name, Node* before, Attributes attributes) {
  Graph& graph = value->graph();
  const std::string name = value->name();
  graph.rename(value, graph.unique_name(new_name));
  std::vector<Value*> inputs{nullptr};
  inputs.insert(inputs.end(), others.begin(), others.end());
  Node* const node = graph.add_node(op, "", inputs, {name}, std::move(attributes), before);
  node->output()->set_type(value->type());
  graph.replace_all_uses(value, node->output());
  node->set_input(0, value);
  graph.preserve(node->output()) = graph.preserved_of(value);
  graph.preserve(value).in_value_info = false;
  return node;
}

}  // namespace graft::edit

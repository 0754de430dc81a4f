#include "core/layers/layer_context.h"

#include "core/graph/edit.h"
#include "core/layers/init.h"
#include "core/ops/infer.h"

namespace graft {

LayerContext::LayerContext(Graph& graph, std::int64_t opset, std::uint64_t seed)
    : graph_(graph), opset_(opset), seed_(seed) {
  constexpr int kOldestOpset = 7;
  if (opset < kOldestOpset) {
    fail(ErrorKind::unsupported, "layers can be added from opset ", kOldestOpset,
         " on, but the model imports opset ", opset, "; convert the model to a newer one");
  }
}

bool LayerContext::is_taken(const std::string& name) const {
  for (const char* suffix : {"", ".weight", ".bias", ".running_mean", ".running_var", ".ratio"}) {
    if (graph_.find(name + suffix) != nullptr || edit::is_name_of_body(graph_, name + suffix)) {
      return true;
    }
  }
  return false;
}

std::string LayerContext::name(std::string_view kind, const std::string& given) const {
  if (!given.empty()) {
    if (is_taken(given)) {
      fail(ErrorKind::argument, kind, ": the name '", given,
           "' is taken by a value or a parameter of the model; choose another");
    }
    return given;
  }
  const std::string stem = text(kind, kind.back() == '6' ? "_" : "");  // relu6_1, not relu61
  std::string fresh;
  for (int number = 1; fresh.empty() || is_taken(fresh); ++number) fresh = text(stem, number);
  return fresh;
}

Value* LayerContext::node(std::string_view op, const std::vector<Value*>& inputs,
                          const std::string& name, Attributes attributes) {
  Node* const added =
      graph_.add_node(op, "", inputs, {graph_.unique_name(name)}, std::move(attributes));
  added->set_name(name);  // before inference: errors name the node
  infer(*added);
  return added->output();
}

Value* LayerContext::initializer(const std::string& name, Tensor tensor) {
  return graph_.add_initializer(name, std::move(tensor));
}

Value* LayerContext::uniform(const std::string& name, DType dtype, const Shape& shape, double bound,
                             std::optional<std::uint64_t> seed) {
  return initializer(name, init_uniform(seed.value_or(seed_), name, dtype, shape, bound));
}

Value* LayerContext::scalar(const std::string& name, const Value& like, double value) {
  return initializer(graph_.unique_name(name), Tensor::full(like.dtype(), {}, value));
}

}  // namespace graft

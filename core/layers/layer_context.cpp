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
  for (const char* suffix : {"", ".weight", ".bias", ".running_mean", ".running_var", ".ratio",
                             ".weight_ih_l0", ".in_proj.weight", ".out_proj.weight", ".shape"}) {
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
  return node_of(op, inputs, name, {graph_.unique_name(name)}, std::move(attributes))->output();
}

Node* LayerContext::node_of(std::string_view op, const std::vector<Value*>& inputs,
                            const std::string& name, const std::vector<std::string>& outputs,
                            Attributes attributes) {
  Node* const added = graph_.add_node(op, "", inputs, outputs, std::move(attributes), before_);
  added->set_name(name);  // before inference: errors name the node
  infer(*added);
  return added;
}

Value* LayerContext::initializer(const std::string& name, Tensor tensor) {
  return graph_.add_initializer(name, std::move(tensor));
}

Value* LayerContext::uniform(const std::string& name, DType dtype, const Shape& shape, double bound,
                             std::optional<std::uint64_t> seed) {
  return initializer(name, init_uniform(seed.value_or(seed_), name, dtype, shape, bound));
}

Value* LayerContext::weight(const std::string& name, DType dtype, const Shape& shape,
                            const Fans& fans, const WeightStart& start, const Init& usual) {
  const Init init = start.init ? *start.init : init_.value_or(usual);
  return initializer(name, init_weight(init, fans, start.seed.value_or(seed_), name, dtype, shape));
}

Value* LayerContext::bias(const std::string& name, DType dtype, const Shape& shape, double bound,
                          const WeightStart& start) {
  if (has_init(start)) return initializer(name, Tensor::zeros(dtype, shape));
  return uniform(name, dtype, shape, bound, start.seed);
}

Value* LayerContext::integers(const std::string& name, const std::vector<std::int64_t>& numbers) {
  const Shape shape{static_cast<std::int64_t>(numbers.size())};
  return initializer(graph_.unique_name(name), Tensor::from(shape, numbers));
}

Value* LayerContext::scalar(const std::string& name, const Value& like, double value) {
  return initializer(graph_.unique_name(name), Tensor::full(like.dtype(), {}, value));
}

}  // namespace graft

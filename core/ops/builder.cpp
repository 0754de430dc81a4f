#include "core/ops/builder.h"

#include <algorithm>
#include <cctype>

#include "core/ops/infer.h"

namespace graft {

Node* Builder::node(std::string_view op, std::string_view domain, const std::vector<Value*>& inputs,
                    int outputs, Attributes attributes) {
  std::string stem = prefix_ + std::string(op);
  std::transform(stem.begin() + static_cast<std::ptrdiff_t>(prefix_.size()), stem.end(),
                 stem.begin() + static_cast<std::ptrdiff_t>(prefix_.size()),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  Node* const added = graph_.add_node(op, domain, inputs, {}, std::move(attributes), before_);
  for (int i = 0; i < outputs; ++i) graph_.add_node_output(added, graph_.unique_name(stem));
  infer(*added);
  return added;
}

Node* Builder::node(std::string_view op, std::string_view domain, const std::vector<Value*>& inputs,
                    const std::vector<std::string>& outputs, Attributes attributes) {
  Node* const added = graph_.add_node(op, domain, inputs, outputs, std::move(attributes), before_);
  infer(*added);
  return added;
}

Value* Builder::constant(Tensor tensor, std::string_view stem) {
  return graph_.add_initializer(graph_.unique_name(prefix_ + std::string(stem)), std::move(tensor));
}

}  // namespace graft

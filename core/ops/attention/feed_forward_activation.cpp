#include <array>

#include "core/ops/attention/feed_forward.h"
#include "core/ops/builder.h"
#include "core/ops/infer.h"
#include "core/ops/registry.h"

namespace graft::feed_forward {
Sizes::Sizes(const KernelRequest& request)
    : width(request.shape(kW1)[0]), hidden(request.shape(kW1)[1]), columns(request.shape(kW2)[1]) {
  const Shape& x = request.shape(kX);
  rows = x.size(0, x.rank() - 1);
}

/// The activation's own rule says which op is its gradient, and whether that reads a or h.
Activation::Activation(const KernelRequest& request) {
  Graph graph("activation");
  const ValueType type{request.dtype(), SymShape(Shape{1})};
  Value* const h = graph.add_input("h", type);
  Value* const da = graph.add_input("da", type);
  Attributes attributes = request.attributes();
  const std::string name = attributes.get_string("activation", "");
  attributes.erase("activation");
  Builder builder(graph);
  const Node& node = *builder.node(name, "", {h}, 1, std::move(attributes));
  const Rule rule = *OpRegistry::instance().get(node).backward.rule();
  const Expr dh = rule(Gradient(node, builder, {builder.expr(da)}, {true})).front();
  forward_ = find_run_function(node, request.device());
  backward_ = find_run_function(*dh.value()->producer(), request.device());
  backward_reads_a_ = dh.value()->producer()->input(0) == node.output();
}

void Activation::apply(std::int64_t count, const void* h, void* a) const {
  const RunOperand from{h, 1};
  forward_(count, {&from, 1}, a);
}

void Activation::apply_gradient(std::int64_t count, const void* h, const void* a, const void* da,
                                void* dh) const {
  const std::array<RunOperand, 2> from{{{backward_reads_a_ ? a : h, 1}, {da, 1}}};
  backward_(count, from, dh);
}

}  // namespace graft::feed_forward

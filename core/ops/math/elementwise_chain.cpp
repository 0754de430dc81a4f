#include "core/ops/math/elementwise_chain.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/ops/infer.h"
#include "core/ops/kernels/elementwise_samples.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

const Graph& chain_body(const Node& chain) {
  const Attribute* const found = chain.attributes.find("body");
  const auto* const body =
      found == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&found->value);
  if (body == nullptr || *body == nullptr)
    fail(ErrorKind::model, chain.label(), ": it has no body");
  return **body;
}

void check_counts(const Node& chain, const Graph& body) {
  const auto check = [&](std::string_view what, std::size_t found, int wanted) {
    if (static_cast<int>(found) == wanted) return;
    fail(ErrorKind::model, chain.label(), ": its body has ", found, " ", what, ", wanted ", wanted);
  };
  check("inputs", body.inputs().size(), chain.input_count());
  check("outputs", body.outputs().size(), chain.output_count());
  const std::size_t values = body.inputs().size() + body.initializers().size() + body.node_count();
  if (chain.input_count() > kMostChainInputs || values > kMostChainValues) {
    fail(ErrorKind::model, chain.label(), ": ", chain.input_count(), " inputs and ", values,
         " values are too many for one chain; the most are ", kMostChainInputs, " and ",
         kMostChainValues);
  }
}

void check_link(const Node& chain, const Node& link) {
  const auto is_outside = [&](const Value* input) {
    return input != nullptr && &input->graph() != &link.graph();
  };
  bool has_body = false;
  for_each_body(link, [&](const Graph&) { has_body = true; });
  if (link.output_count() != 1 || link.output(0) == nullptr || has_body ||
      link.input_count() > kMostLinkInputs || std::ranges::any_of(link.inputs(), is_outside)) {
    fail(ErrorKind::model, chain.label(), ": ", link.label(),
         " is no link of a chain: wanted one output and up to ", kMostLinkInputs,
         " inputs from within the body");
  }
}

void infer_chain(InferContext& context) {
  const std::unique_ptr<Graph> body = typed_body(context.node());
  for (int i = 0; i < context.node().output_count(); ++i) {
    const ValueType& type = at(body->outputs(), i)->type();
    context.set_output(i, type.dtype, type.shape);
  }
}

/// Any output may take the place of any input: the kernel sees to it.
std::vector<Alias> every_alias() {
  std::vector<Alias> aliases;
  for (int output = 0; output < kMostChainInputs; ++output) {
    for (int input = 0; input < kMostChainInputs; ++input) {
      aliases.push_back({output, input, AliasKind::in_place});
    }
  }
  return aliases;
}

/// Output i is the new content of input i.
std::vector<Alias> every_state() {
  std::vector<Alias> aliases;
  for (int i = 0; i < kMostChainInputs; ++i) aliases.push_back({i, i, AliasKind::state});
  return aliases;
}

void infer_update_chain(InferContext& context) {
  infer_chain(context);
  for (int i = 0; i < context.node().output_count(); ++i) {
    const ValueType& made = context.node().output(i)->type();
    const ValueType& wanted = context.input(i).type();
    const bool is_other_type = made.dtype != wanted.dtype && wanted.dtype != DType::undefined;
    const auto made_shape = made.shape ? made.shape->known() : std::nullopt;
    const auto wanted_shape = wanted.shape ? wanted.shape->known() : std::nullopt;
    if (is_other_type || (made_shape && wanted_shape && *made_shape != *wanted_shape)) {
      context.fail(is_other_type ? ErrorKind::type : ErrorKind::shape, "its body makes ", made,
                   " of variable '", context.input(i).name(), "', wanted ", wanted);
    }
    context.copy_type(i, i);
  }
}

/// The body of a sample, from inputs "x0", "x1", ...
class SampleBody {
 public:
  explicit SampleBody(int inputs) {
    for (int i = 0; i < inputs; ++i) body_->add_input(text("x", i), {});
  }
  SampleBody& link(std::string_view output, std::string_view op,
                   const std::vector<std::string_view>& inputs, Attributes attributes = {},
                   std::string_view domain = "") {
    std::vector<Value*> values;
    for (const std::string_view input : inputs) {
      values.push_back(input.empty() ? nullptr : body_->find(input));
    }
    body_->add_node(op, domain, values, {std::string(output)}, std::move(attributes));
    return *this;
  }
  Attributes outputs(const std::vector<std::string_view>& names) {
    for (const std::string_view name : names) body_->add_output(body_->find(name));
    return {{"body", body_}};
  }

 private:
  std::shared_ptr<Graph> body_ = std::make_shared<Graph>("body");
};

Sample chain_sample(std::string name, const std::vector<Shape>& shapes, Attributes attributes,
                    int outputs = 1) {
  Sample result{.name = std::move(name), .inputs = {}, .attributes = std::move(attributes)};
  for (const Shape& shape : shapes) result.inputs.push_back({.shape = shape});
  result.outputs = outputs;
  return result;
}

/// relu(x0 x1 + x2)
Attributes three_operands() {
  return SampleBody(3)
      .link("product", "Mul", {"x0", "x1"})
      .link("sum", "Add", {"product", "x2"})
      .link("y", "Relu", {"sum"})
      .outputs({"y"});
}

/// An output that is read on, and inputs that are read after outputs are written.
Attributes many_outputs() {
  return SampleBody(2)
      .link("product", "Mul", {"x0", "x1"})
      .link("tanh", "Tanh", {"product"})
      .link("rest", "Sub", {"x0", "tanh"})
      .link("last", "Add", {"rest", "x1"})
      .outputs({"tanh", "product", "last"});
}

/// An operand that is left out, and an attribute.
Attributes with_settings() {
  return SampleBody(2)
      .link("clipped", "Clip", {"x0", "x1", ""})
      .link("y", "LeakyRelu", {"clipped"}, {{"alpha", 0.3F}})
      .outputs({"y"});
}

/// bool values within the chain and as a result.
Attributes with_choices() {
  return SampleBody(2)
      .link("is_more", "Greater", {"x0", "x1"})
      .link("is_less", "Not", {"is_more"})
      .link("y", "Where", {"is_more", "x0", "x1"})
      .outputs({"is_less", "y"});
}

/// Many values that are alive at once.
Attributes tree() {
  return SampleBody(2)
      .link("a", "Exp", {"x0"})
      .link("b", "Neg", {"x1"})
      .link("c", "Sigmoid", {"x0"})
      .link("d", "Erf", {"x1"})
      .link("dx", "TanhGrad", {"c", "d"}, {}, kInternalDomain)
      .link("ab", "Div", {"a", "c"})
      .link("cd", "Sub", {"ab", "b"})
      .link("y", "Mul", {"dx", "cd"})
      .outputs({"y"});
}

/// Momentum: variables x0 and x1, gradient x2, rate x3.
Attributes descent() {
  return SampleBody(4)
      .link("velocity", "Add", {"x1", "x2"})
      .link("way", "Mul", {"velocity", "x3"})
      .link("moved", "Sub", {"x0", "way"})
      .outputs({"moved", "velocity"});
}

/// A variable that is written before another result reads what it was.
Attributes swapped_order() {
  return SampleBody(3)
      .link("x0_new", "Mul", {"x1", "x2"})
      .link("difference", "Sub", {"x0", "x2"})
      .link("x1_new", "Tanh", {"difference"})
      .outputs({"x0_new", "x1_new"});
}

std::vector<Sample> update_samples() {
  return {
      chain_sample("descent", {{3, 11}, {3, 11}, {3, 11}, {}}, descent(), 2),
      chain_sample("many", {{34993}, {34993}, {34993}, {}}, descent(), 2),
      chain_sample("empty", {{0, 3}, {0, 3}, {0, 3}, {}}, descent(), 2),
      chain_sample("reads_what_was_written", {{5, 419}, {5, 419}, {419}}, swapped_order(), 2),
  };
}

std::vector<Sample> chain_samples() {
  return {
      chain_sample("same_shape", {{3, 11}, {3, 11}, {3, 11}}, three_operands()),
      chain_sample("row_and_scalar", {{3, 11}, {11}, {}}, three_operands()),
      chain_sample("column_and_row", {{3, 11}, {3, 1}, {1, 11}}, three_operands()),
      chain_sample("scalars", {{}, {}, {}}, three_operands()),
      chain_sample("empty", {{0, 3}, {3}, {}}, three_operands()),
      chain_sample("many_in_one_run", {{34993}, {34993}, {1}}, three_operands()),
      chain_sample("many_runs", {{9, 10, 389}, {9, 1, 389}, {10, 389}}, three_operands()),
      chain_sample("image", {{2, 3, 4, 5}, {3, 1, 1}, {2, 3, 4, 5}}, three_operands()),
      chain_sample("outputs", {{5, 419}, {5, 419}}, many_outputs(), 3),
      chain_sample("outputs_of_many", {{7, 4999}, {7, 4999}}, many_outputs(), 3),
      chain_sample("settings", {{3, 700}, {}}, with_settings()),
      chain_sample("choices", {{3, 700}, {700}}, with_choices(), 2),
      chain_sample("tree", {{3, 1400}, {3, 1400}}, tree()),
  };
}

}  // namespace

std::unique_ptr<Graph> typed_body(const Node& chain) {
  const Graph& untyped = chain_body(chain);
  check_counts(chain, untyped);
  std::unique_ptr<Graph> body = untyped.clone();
  for (int i = 0; i < chain.input_count(); ++i) {
    const Value* const input = chain.input(i);
    if (input == nullptr) fail(ErrorKind::model, chain.label(), ": input ", i, " is missing");
    at(body->inputs(), i)->set_type(input->type());
  }
  const Value* first = nullptr;
  for (const auto& link : body->nodes()) {
    check_link(chain, *link);
    infer(*link);
    const Value* const result = link->output(0);
    if (!result->shape() || !result->shape()->known()) continue;
    if (first == nullptr) first = result;
    if (result->known_shape() != first->known_shape()) {
      fail(ErrorKind::shape, chain.label(), ": its links have the shapes ", first->known_shape(),
           " ('", first->name(), "') and ", result->known_shape(), " ('", result->name(), "')");
    }
  }
  for (const Value* output : body->outputs()) {
    if (output->producer() == nullptr || std::ranges::count(body->outputs(), output) > 1) {
      fail(ErrorKind::model, chain.label(), ": its output '", output->name(),
           "' is no result, or stands there twice");
    }
  }
  return body;
}

/// Element-wise ops on values of one shape, as one op that passes over memory once. Its body holds
/// them, without types; passes::fuse_chains writes it. Operands broadcast. An UpdateChain writes
/// its results to variables, which are its first operands.
void register_elementwise_chain(OpRegistry& registry) {
  registry.add({.name = "ElementwiseChain",
                .domain = kInternalDomain,
                .inputs = {{"operands", Arity::variadic}},
                .outputs = {{"results", Arity::variadic}},
                .attributes = {{"body", AttributeType::graph, true}},
                .infer = infer_chain,
                .aliases = every_alias(),
                .layout = kElementwise,
                .backward = NotDifferentiable{"chains are joined after differentiation"},
                .samples = chain_samples});
  registry.add({.name = "UpdateChain",
                .domain = kInternalDomain,
                .inputs = {{"operands", Arity::variadic}},
                .outputs = {{"new_variables", Arity::variadic}},
                .attributes = {{"body", AttributeType::graph, true}},
                .infer = infer_update_chain,
                .aliases = every_state(),
                .backward = NotDifferentiable{"an optimizer update is the end of a step"},
                .samples = update_samples});
}

}  // namespace graft

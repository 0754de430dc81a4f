// Facts that rows state of their ops, held against what the ops do on their samples. Each property
// is one test, named Facts/RowFactTest.<Property>/<op>, and asks both ways: a fact that a row
// forgets fails like one that is wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/ops/builder.h"
#include "core/ops/evaluate.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {
namespace {

using Tensors = std::vector<Tensor>;

bool is_view(const OpDef& def) {
  return !def.aliases.empty() && def.aliases.front().kind == AliasKind::view;
}

std::int64_t element_count(const SampleGraph& sample) {
  std::int64_t count = 0;
  for (const Tensor& input : sample.node_inputs) count += input.defined() ? input.size() : 0;
  return count;
}

/// What the simpler ops that a node is written as give.
Tensors run_decomposed(const SampleGraph& sample, const Tensors& inputs) {
  std::unique_ptr<Graph> graph = sample.graph->clone();
  passes::decompose(*graph);
  passes::settle(*graph);
  Tensors graph_inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value* const value = sample.node->input(static_cast<int>(i));
    if (value != nullptr && !value->is_initializer()) graph_inputs.push_back(inputs[i]);
  }
  Plan plan(std::move(graph), {});
  plan.run(graph_inputs);
  Tensors outputs;
  for (int i = 0; i < plan.output_count(); ++i) outputs.push_back(plan.output(i).clone());
  return outputs;
}

/// Empty where nothing computes the node for these element types.
Tensors run(const OpDef& def, const SampleGraph& sample, const Tensors& inputs,
            const RunState& state = {}) {
  if (is_view(def)) return evaluate(*sample.node, inputs, state);
  const PreparedKernel kernel = find_kernel(*sample.node, cpu());
  if (kernel.run) return evaluate(kernel, *sample.node, inputs, state);
  return def.backward.decomposition() == nullptr ? Tensors() : run_decomposed(sample, inputs);
}

bool differ(const Tensors& a, const Tensors& b) {
  return !std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.defined() == y.defined() && (!x.defined() || equal_bits(x, y));
  });
}

class RowFactTest : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& def() const { return *GetParam(); }

  /// Calls body(sample) for each sample that is not large.
  template <class Body>
  void for_each_sample(DType float_type, Body&& body) const {
    constexpr std::int64_t kLarge = 5000;
    for (const Sample& sample : def().samples()) {
      const SampleGraph built = make_sample_graph(def(), sample, float_type);
      if (element_count(built) <= kLarge) body(built);
    }
  }
};

TEST_P(RowFactTest, DrawsWhatItsRowSays) {
  bool follows_step = false;
  bool follows_name = false;
  for_each_sample(DType::f32, [&](const SampleGraph& sample) {
    const Tensors first = run(def(), sample, sample.node_inputs);
    const RunState later{.step = 1};
    follows_step = follows_step || differ(first, run(def(), sample, sample.node_inputs, later));
    if (sample.node->output(0) == nullptr) return;
    sample.graph->rename(sample.node->output(0), "another_name");
    follows_name = follows_name || differ(first, run(def(), sample, sample.node_inputs));
  });
  const Draws found = follows_name   ? Draws::by_node
                      : follows_step ? Draws::by_attributes
                                     : Draws::nothing;
  EXPECT_EQ(def().draws, found) << "its numbers follow the run: " << follows_step
                                << ", the node: " << follows_name;
}

/// The same elements in another order, floats with the other sign.
Tensor rearranged(const Tensor& tensor) {
  std::vector<double> numbers = to_double(tensor);
  if (!numbers.empty()) std::ranges::rotate(numbers, numbers.begin() + 1);
  if (is_float(tensor.dtype())) {
    for (double& number : numbers) number = -number;
  }
  return Tensor::from(tensor.shape(), numbers).cast(tensor.dtype());
}

/// Whether to_double and back keeps the elements.
bool has_numbers(const Tensor& tensor) {
  return visit_dtype(AllTypes{}, tensor.dtype(), []<class T>() {});
}

TEST_P(RowFactTest, ReadsElementsUnlessItsRowDenies) {
  bool was_tried = false;
  bool reads = false;
  for_each_sample(DType::f32, [&](const SampleGraph& sample) {
    const Tensors plain = run(def(), sample, sample.node_inputs);
    if (plain.empty()) return;
    for (std::size_t i = 0; i < sample.node_inputs.size(); ++i) {
      const Value* const value = sample.node->input(static_cast<int>(i));
      const Tensor& input = sample.node_inputs[i];
      if (value == nullptr || value->is_initializer() || input.size() == 0 || !has_numbers(input)) {
        continue;
      }
      Tensors inputs = sample.node_inputs;
      inputs[i] = rearranged(input);
      was_tried = true;
      reads = reads || differ(plain, run(def(), sample, inputs));
    }
  });
  if (!was_tried && !def().reads_only_shapes) GTEST_SKIP() << "all its inputs are constants";
  EXPECT_EQ(def().reads_only_shapes, was_tried && !reads);
}

/// Numbers that occur once, on both sides of 0, none whole.
Tensor numbered(const Tensor& like, double first, double step) {
  std::vector<double> numbers(static_cast<std::size_t>(like.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = first + step * static_cast<double>(i);
  }
  return Tensor::from(like.shape(), numbers).cast(like.dtype());
}

/// Where elements of the outputs come from among those of the moved inputs, in order; nothing where
/// one is none of these.
std::optional<std::vector<std::size_t>> sources(const Tensors& outputs,
                                                const std::vector<double>& moved) {
  std::map<double, std::size_t> place;
  for (std::size_t i = 0; i < moved.size(); ++i) place[moved[i]] = i;
  std::vector<std::size_t> found;
  for (const Tensor& output : outputs) {
    for (const double number : to_double(output)) {
      const auto at = place.find(number);
      if (at == place.end()) return std::nullopt;
      found.push_back(at->second);
    }
  }
  return found;
}

/// Whether the sample's outputs hold elements of its input 0, or of any of a variadic one, at
/// places that do not depend on them. Nothing where types hide it.
std::optional<bool> moves(const OpDef& def, const SampleGraph& sample) {
  const bool is_variadic = !def.inputs.empty() && def.inputs.front().arity == Arity::variadic;
  const std::size_t count = is_variadic ? sample.node_inputs.size() : 1;
  if (sample.node_inputs.empty() || !sample.node_inputs.front().defined() ||
      sample.node->input(0)->is_initializer() || !is_float(sample.node_inputs.front().dtype())) {
    return std::nullopt;
  }
  const DType dtype = sample.node_inputs.front().dtype();
  std::vector<std::vector<std::size_t>> found;
  for (const double step : {1.0, -0.5}) {
    Tensors inputs = sample.node_inputs;
    std::vector<double> moved;
    for (std::size_t i = 0; i < count; ++i) {
      if (sample.node->input(static_cast<int>(i))->is_initializer()) return std::nullopt;
      const double first = step * (static_cast<double>(moved.size()) - 3.3);
      inputs[i] = numbered(inputs[i], first, step);
      const std::vector<double> numbers = to_double(inputs[i]);
      moved.insert(moved.end(), numbers.begin(), numbers.end());
    }
    const Tensors outputs = run(def, sample, inputs);
    const auto has_type = [&](const Tensor& output) {
      return output.defined() && output.dtype() == dtype;
    };
    if (outputs.empty() || !std::ranges::all_of(outputs, has_type)) return std::nullopt;
    std::optional<std::vector<std::size_t>> places = sources(outputs, moved);
    if (!places) return false;
    found.push_back(*std::move(places));
  }
  if (found[0].empty()) return std::nullopt;
  return found[0] == found[1];
}

TEST_P(RowFactTest, OnlyMovesWhatItsRowSays) {
  if (def().name == "Imputer") GTEST_SKIP() << "the moved elements hold nothing that it replaces";
  std::optional<bool> found;
  for (const DType type : {DType::f32, DType::f64}) {
    for_each_sample(type, [&](const SampleGraph& sample) {
      const std::optional<bool> one = moves(def(), sample);
      if (one) found = found.value_or(true) && *one;
    });
  }
  EXPECT_EQ(def().only_moves, found.value_or(false));
}

/// Whether the rule gives the op a gradient in one internal element-wise op of x or y, and of dy.
bool has_gradient_of_its_own(const OpDef& def) {
  const Rule* const rule = def.backward.rule();
  if (rule == nullptr || def.inputs.size() != 1 || def.outputs.size() != 1 ||
      def.layout.kind != LayoutRule::Kind::elementwise || !def.domain.empty()) {
    return false;
  }
  Graph graph("activation");
  Builder builder(graph);
  const ValueType type{DType::f64, SymShape(Shape{1})};
  Value* const x = graph.add_input("x", type);
  Value* const dy = graph.add_input("dy", type);
  const Node& node = *builder.node(def.name, "", {x}, 1);
  if (!find_run_function(node, cpu())) return false;
  const std::vector<Expr> dx = (*rule)(Gradient(node, builder, {builder.expr(dy)}, {true}));
  if (dx.size() != 1 || !dx.front()) return false;
  const Node* const made = dx.front().value()->producer();
  return made != nullptr && made->domain() == kInternalDomain && made->input_count() == 2 &&
         (made->input(0) == x || made->input(0) == node.output()) && made->input(1) == dy &&
         static_cast<bool>(find_run_function(*made, cpu()));
}

TEST_P(RowFactTest, IsAnActivationWhereItsGradientIsOneOp) {
  if (def().only_moves) GTEST_SKIP() << "it computes nothing";
  ASSERT_EQ(def().is_activation, has_gradient_of_its_own(def()));
  if (!def().is_activation) return;
  const OpDef& fused = *OpRegistry::instance().find("FeedForward", kInternalDomain);
  for (const AttributeDef& attribute : def().attributes) {
    EXPECT_TRUE(std::ranges::any_of(
        fused.attributes, [&](const AttributeDef& one) { return one.name == attribute.name; }))
        << "FeedForward hands on no attribute '" << attribute.name << "'";
  }
}

/// Of the ops that make f32 of one f32 tensor, of the same shape. Chains ask the kernel and layouts
/// the row whether each element is computed by itself.
TEST_P(RowFactTest, IsElementwiseInItsRowAndInItsKernel) {
  bool was_tried = false;
  bool has_run = true;
  bool works_in_place = true;
  for_each_sample(DType::f32, [&](const SampleGraph& sample) {
    const Node& node = *sample.node;
    if (def().inputs.size() != 1 || def().inputs.front().arity == Arity::variadic ||
        node.input_count() != 1 || node.output_count() != 1 || def().only_moves ||
        node.input(0)->type() != node.output(0)->type() || node.output(0)->dtype() != DType::f32 ||
        !find_kernel(node, cpu()).run) {
      return;
    }
    was_tried = true;
    has_run = has_run && find_run_function(node, cpu());
    works_in_place = works_in_place && !def().aliases.empty();
  });
  if (!was_tried) GTEST_SKIP() << "it has other inputs or outputs";
  EXPECT_EQ(def().layout.kind == LayoutRule::Kind::elementwise, has_run);
  EXPECT_TRUE(works_in_place || !has_run);
}

/// An update by a gradient has a form that makes the gradient: it reads the same, but for one input
/// more.
TEST_P(RowFactTest, HasAProductFormThatIsThere) {
  const std::string_view name = def().product_form.op;
  if (name.empty()) GTEST_SKIP() << "it has none";
  const OpDef* const form = OpRegistry::instance().find(name, kInternalDomain);
  ASSERT_NE(form, nullptr) << name;
  EXPECT_EQ(form->inputs.size(), def().inputs.size() + 1);
  EXPECT_EQ(form->product_form.only_adds, def().product_form.only_adds);
  EXPECT_TRUE(form->product_form.op.empty());
  EXPECT_NE(form->multiply_adds, nullptr);
}

std::vector<const OpDef*> rows_with_samples() {
  std::vector<const OpDef*> rows;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (!def.is_dynamic && !def.samples().empty()) rows.push_back(&def);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Facts, RowFactTest, testing::ValuesIn(rows_with_samples()),
                         [](const auto& row) { return std::string(row.param->name); });

}  // namespace
}  // namespace graft::test

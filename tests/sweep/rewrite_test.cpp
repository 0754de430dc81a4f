// Every rewrite of the passes on every sample of its own: as it is, and in variants under other
// names, with operands swapped and nodes in another order. Each is run in f64 before and after the
// rewrite: values and gradients have to agree. A new rewrite is covered by its samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "autograd/backward.h"
#include "core/base/rng.h"
#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"
#include "core/runtime/plan.h"

namespace graft::test {
namespace {

using passes::Rewrite;
using passes::RewriteSample;

constexpr int kVariants = 10;

struct Case {
  const Rewrite* rewrite;
  const RewriteSample* sample;
  int variant;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.rewrite->name << " on sample " << one.sample->name << ", variant " << one.variant;
}

std::vector<const Rewrite*> all_rewrites() {
  std::vector<const Rewrite*> all;
  for (const passes::RewritePass& pass : passes::rewrite_passes()) {
    for (const Rewrite& one : pass.rewrites()) all.push_back(&one);
  }
  return all;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Rewrite* const rewrite : all_rewrites()) {
    for (const RewriteSample& sample : rewrite->samples) {
      for (int variant = 0; variant < kVariants; ++variant) {
        cases.push_back({rewrite, &sample, variant});
      }
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return text(info.param.rewrite->name, "_", info.param.sample->name, "_", info.param.variant);
}

bool apply(const Rewrite& rewrite, Graph& graph) {
  return passes::rewrite(graph, {&rewrite, 1});
}

/// A stream of random choices.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(random_.uniform_double(next_++) * static_cast<double>(count));
  }

 private:
  Philox random_;
  std::uint64_t next_ = 0;
};

void rename_all(Graph& graph, Dice& dice) {
  std::vector<Value*> values = graph.inputs();
  values.insert(values.end(), graph.initializers().begin(), graph.initializers().end());
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr) values.push_back(node->output(i));
    }
  }
  for (Value* const value : values) {
    graph.rename(value, graph.unique_name(text("v", dice.below(1000))));
  }
}

void swap_operands(Graph& graph, Dice& dice) {
  for (const auto& node : graph.nodes()) {
    if (!(node->is("Add") || node->is("Mul")) || dice.below(2) == 0) continue;
    Value* const first = node->input(0);
    Value* const second = node->input(1);
    node->set_input(0, second);
    node->set_input(1, first);
  }
}

/// Moves nodes behind one another, each as soon as chance wants it and what it reads is there.
void reorder(Graph& graph, Dice& dice) {
  std::vector<Node*> open;
  for (const auto& node : graph.nodes()) open.push_back(node.get());
  const auto is_open = [&](const Value* value) {
    return value != nullptr && std::ranges::find(open, value->producer()) != open.end();
  };
  while (!open.empty()) {
    std::vector<Node*> ready;
    for (Node* const node : open) {
      if (std::ranges::none_of(node->inputs(), is_open)) ready.push_back(node);
    }
    Node* const chosen = ready[dice.below(ready.size())];
    graph.move(chosen, nullptr);
    std::erase(open, chosen);
  }
}

/// The sample with floats of that type.
std::unique_ptr<Graph> make(const Case& one, DType dtype) {
  auto graph = std::make_unique<Graph>("sample");
  passes::SampleNet net(*graph, dtype);
  const passes::Results results = one.sample->make(net);
  for (const Expr& output : results.list()) graph->add_output(output.value());
  if (one.variant > 0) {
    Dice dice(static_cast<std::uint64_t>(one.variant));
    rename_all(*graph, dice);
    swap_operands(*graph, dice);
    reorder(*graph, dice);
    verify(*graph);
  }
  return graph;
}

/// Gives what `graph` shares with `wide` the types and elements that it has there; the constants of
/// its own become f64.
void widen(Graph& graph, const Graph& wide) {
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* const value : initializers) {
    const Value* const twin = wide.find(value->name());
    Tensor tensor = value->initializer();
    if (twin != nullptr) tensor = twin->initializer();
    if (twin == nullptr && tensor.dtype() == DType::f32) tensor = tensor.cast(DType::f64);
    Value* const added = graph.add_initializer(graph.unique_name("wide"), tensor);
    added->is_variable = value->is_variable;
    graph.replace_all_uses(value, added);
    graph.remove_initializer(value);
  }
  for (Value* const input : graph.inputs()) input->set_type(wide.find(input->name())->type());
  passes::infer_shapes(graph);
}

/// f32 numbers from -1 to 1; of bools every other.
Tensor numbers(const ValueType& type, std::uint64_t stream) {
  const Shape shape = type.shape->known().value();
  const Philox random(20261122, stream);
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_even = (i + stream) % 2 == 0;
    values[i] = type.dtype == DType::boolean ? static_cast<double>(is_even)
                                             : 2.0 * random.uniform_double(i) - 1.0;
  }
  return Tensor::from(shape, values).cast(DType::f32).cast(type.dtype);
}

/// What the graph puts out, as f64.
std::vector<std::vector<double>> run(const Graph& graph) {
  std::vector<Tensor> inputs;
  for (const Value* const input : graph.inputs()) {
    inputs.push_back(numbers(input->type(), inputs.size()));
  }
  // A plan works on the tensors of variables themselves.
  std::unique_ptr<Graph> own = graph.clone();
  for (Value* const value : own->initializers()) {
    value->set_initializer(value->initializer().clone());
  }
  Plan plan(std::move(own), {});
  plan.run(inputs);
  std::vector<std::vector<double>> outputs;
  for (int i = 0; i < plan.output_count(); ++i) outputs.push_back(to_double(plan.output(i)));
  return outputs;
}

/// The graph of all gradients of the outputs, each weighted at random; null where some node has
/// none.
std::unique_ptr<Graph> gradients_of(const Graph& graph) {
  std::unique_ptr<Graph> result = graph.clone();
  std::vector<autograd::Seed> seeds;
  std::vector<Value*> wanted;
  for (Value* const input : result->inputs()) {
    if (is_float(input->dtype())) wanted.push_back(input);
  }
  const std::vector<const Value*> from(result->outputs().begin(), result->outputs().end());
  if (!autograd::blockers(*result, from, {wanted.begin(), wanted.end()}).empty()) return nullptr;
  for (Value* const output : result->outputs()) {
    seeds.push_back({output, result->add_input(result->unique_name("seed"), output->type())});
  }
  std::vector<Value*> gradients = autograd::backward(*result, seeds, wanted);
  std::erase(gradients, nullptr);
  result->set_outputs(gradients);
  passes::settle(*result);
  return result;
}

void expect_same(const Graph& before, const Graph& after, double tolerance) {
  const std::vector<std::vector<double>> wanted = run(before);
  const std::vector<std::vector<double>> found = run(after);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(found[i].size(), wanted[i].size()) << "output " << i;
    for (std::size_t at = 0; at < wanted[i].size(); ++at) {
      ASSERT_NEAR(found[i][at], wanted[i][at], tolerance * (1.0 + std::abs(wanted[i][at])))
          << "output " << i << ", element " << at << "\nbefore: " << print(before)
          << "\nafter: " << print(after);
    }
  }
}

void expect_same_with_gradients(const Graph& before, const Graph& after, double tolerance) {
  expect_same(before, after, tolerance);
  const std::unique_ptr<Graph> wanted = gradients_of(before);
  if (wanted == nullptr || testing::Test::HasFatalFailure()) return;
  const std::unique_ptr<Graph> found = gradients_of(after);
  ASSERT_NE(found, nullptr) << "no gradient passes any more\n" << print(after);
  expect_same(*wanted, *found, tolerance);
}

class RewriteTest : public testing::TestWithParam<Case> {};

/// Applied in f32, as in nets, and then run in f64.
TEST_P(RewriteTest, KeepsValuesAndGradients) {
  constexpr double kOfAttributes = 1e-6;  // these are f32
  const std::unique_ptr<Graph> before = make(GetParam(), DType::f64);
  const std::unique_ptr<Graph> after = make(GetParam(), DType::f32);
  ASSERT_TRUE(apply(*GetParam().rewrite, *after)) << "it does not match\n" << print(*after);
  verify(*after);
  EXPECT_FALSE(apply(*GetParam().rewrite, *after)) << "it matches what it made\n" << print(*after);
  widen(*after, *before);
  expect_same_with_gradients(*before, *after, kOfAttributes);
}

/// Applied in f64: a number that an attribute cannot hold keeps it from matching.
TEST_P(RewriteTest, LosesNothingInF64) {
  constexpr double kRounding = 1e-11;
  const std::unique_ptr<Graph> before = make(GetParam(), DType::f64);
  const std::unique_ptr<Graph> after = before->clone();
  if (!apply(*GetParam().rewrite, *after)) GTEST_SKIP() << "it does not match in f64";
  verify(*after);
  expect_same_with_gradients(*before, *after, kRounding);
}

INSTANTIATE_TEST_SUITE_P(Sweep, RewriteTest, testing::ValuesIn(all_cases()), case_name);

/// Those that no row names would not be swept.
TEST(Rewrites, AreNamedByTheFileThatAppliesThem) {
  std::set<std::string> missing;
  const std::filesystem::path folder = "core/passes";  // tests run in the repository's root
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (entry.path().extension() == ".cpp" && text.find("return rewrite(") != text.npos) {
      missing.insert(entry.path().stem().string());
    }
  }
  EXPECT_GT(missing.size(), 10U);
  for (const passes::RewritePass& pass : passes::rewrite_passes()) {
    missing.erase(std::string(pass.name));
  }
  EXPECT_TRUE(missing.empty()) << *missing.begin() << ": no row in core/passes/rewrite.cpp";
}

TEST(Rewrites, EachHasSamplesAndANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (const Rewrite* const rewrite : all_rewrites()) {
    EXPECT_FALSE(rewrite->samples.empty()) << rewrite->name;
    EXPECT_EQ(std::ranges::count(names, rewrite->name), 0) << rewrite->name;
    names.push_back(rewrite->name);
  }
}

}  // namespace
}  // namespace graft::test

// Every op on every sample of its row: each property below is one test, named
// Sweep/SampleTest.<Property>/<op>_<sample>. A new op is covered by writing its row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/gradient_check.h"
#include "core/ops/builder.h"
#include "core/ops/evaluate.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"
#include "tests/sweep/sample_case.h"
#include "tests/sweep/sample_graph.h"
#include "tests/sweep/sample_layout.h"

namespace graft::test {
namespace {

class SampleTest : public testing::TestWithParam<SampleCase> {
 protected:
  const OpDef& def() const { return *GetParam().def; }
  const Sample& sample() const { return GetParam().sample; }
  SampleGraph make(DType float_type) const {
    return make_sample_graph(def(), sample(), float_type);
  }
  bool is_view() const {
    return !def().aliases.empty() && def().aliases.front().kind == AliasKind::view;
  }
};

bool close(double found, double wanted, const Sample& sample) {
  if (std::isnan(wanted)) return std::isnan(found);
  if (std::isinf(wanted)) return found == wanted;
  return std::abs(found - wanted) <= sample.absolute + sample.relative * std::abs(wanted);
}

/// Elements of types of a few bits as f32; others as they are.
Tensor readable(const Tensor& tensor) {
  if (visit_dtype(AllTypes{}, tensor.dtype(), []<class T>() {})) return tensor;
  Graph graph("readable");
  Builder builder(graph);
  Value* const x = graph.add_input("x", {tensor.dtype(), SymShape(tensor.shape())});
  const Node& node = *cast(builder.expr(x), DType::f32).value()->producer();
  return evaluate(node, {tensor}).front();
}

void expect_close(const Tensor& found, const Tensor& wanted, const Sample& sample,
                  const std::string& what) {
  ASSERT_EQ(found.shape(), wanted.shape()) << what;
  if (found.dtype() == DType::string) {
    ASSERT_TRUE(equal_bits(found, wanted)) << what;
    return;
  }
  const std::vector<double> a = to_double(readable(found));
  const std::vector<double> b = to_double(readable(wanted));
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(close(a[i], b[i], sample))
        << what << " element " << i << ": found " << a[i] << ", reference " << b[i];
  }
}

/// The result of a dynamic kernel.
std::vector<Tensor> call(const SampleGraph& sample) {
  const std::vector<Datum> inputs(sample.node_inputs.begin(), sample.node_inputs.end());
  std::vector<Tensor> results;
  for (const Datum& result : call_dynamic(*sample.node, inputs)) {
    results.push_back(result.tensor());
  }
  return results;
}

/// Samples hold numbers: strings, sequences and bodies are for the tests of their families.
TEST(Registry, EveryOpHasSamples) {
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.is_dynamic) continue;
    EXPECT_FALSE(def.samples().empty()) << def.domain << "." << def.name;
  }
}

/// What the simpler ops give that a node without kernels is written as.
std::vector<Tensor> evaluate_decomposed(const SampleGraph& sample) {
  std::unique_ptr<Graph> graph = sample.graph->clone();
  passes::decompose(*graph);
  passes::settle(*graph);
  Plan plan(std::move(graph), {});
  plan.run(sample.graph_inputs);
  std::vector<Tensor> outputs;
  for (int i = 0; i < plan.output_count(); ++i) outputs.push_back(plan.output(i).clone());
  return outputs;
}

/// Each kernel in f32 (or the sample's integer types) against the last one in f64.
TEST_P(SampleTest, ValuesAgree) {
  if (is_view()) GTEST_SKIP() << "a view: no kernel runs";
  if (def().is_dynamic) {
    const std::vector<Tensor> found = call(make(DType::f32));
    const std::vector<Tensor> wanted = call(make(DType::f64));
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      expect_close(found[i], wanted[i], sample(), "output " + std::to_string(i));
    }
    return;
  }
  const SampleGraph reference = make(DType::f64);
  const std::vector<PreparedKernel> references = prepare_all_kernels(*reference.node, cpu());
  if (references.empty() && def().backward.decomposition() != nullptr) {
    const std::vector<Tensor> wanted = evaluate_decomposed(reference);
    const std::vector<Tensor> found = evaluate_decomposed(make(DType::f32));
    for (std::size_t i = 0; i < found.size(); ++i) {
      expect_close(found[i], wanted[i], sample(), "decomposed, output " + std::to_string(i));
    }
    return;
  }
  ASSERT_FALSE(references.empty()) << "no kernel computes this in f64";
  const std::vector<Tensor> wanted =
      evaluate(references.back(), *reference.node, reference.node_inputs);
  const SampleGraph tested = make(DType::f32);
  const std::vector<PreparedKernel> kernels = prepare_all_kernels(*tested.node, cpu());
  ASSERT_FALSE(kernels.empty()) << "no kernel computes this in f32";
  for (const PreparedKernel& kernel : kernels) {
    const std::vector<Tensor> found = evaluate(kernel, *tested.node, tested.node_inputs);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i].defined()) continue;
      expect_close(found[i], wanted[i], sample(),
                   std::string(kernel.name) + " output " + std::to_string(i));
    }
  }
}

/// A sample of 16-bit floats, what f64 makes of the same numbers, and how close the two should be.
struct ShortSample {
  DType type;
  SampleGraph built;
  std::vector<Tensor> wanted;
  Sample allowed;
};

/// Bounds are as close as PyTorch asks of its own kernels.
std::vector<ShortSample> short_samples(const OpDef& def, const Sample& sample) {
  std::vector<ShortSample> samples;
  for (const auto& [type, relative] : {std::pair(DType::f16, 1e-3), {DType::bf16, 1.6e-2}}) {
    std::optional<SampleGraph> built = short_sample_graph(def, sample, type);
    if (!built || prepare_all_kernels(*built->node, cpu()).empty() || !has_floats(*built)) continue;
    const SampleGraph exact = make_sample_graph(def, sample, DType::f64, type);
    const PreparedKernel kernel = prepare_all_kernels(*exact.node, cpu()).back();
    std::vector<Tensor> wanted = evaluate(kernel, *exact.node, exact.node_inputs);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Value* const output = built->node->output(static_cast<int>(i));
      // What is beyond the type's range is infinite.
      if (output != nullptr) wanted[i] = wanted[i].cast(output->dtype());
    }
    Sample allowed = sample;
    allowed.relative = std::max(allowed.relative, relative);
    allowed.absolute = std::max(allowed.absolute, allowed.short_absolute);
    samples.push_back({type, std::move(*built), std::move(wanted), std::move(allowed)});
  }
  return samples;
}

/// Kernels of 16-bit floats against f64 on the same numbers.
TEST_P(SampleTest, ShortTypesAgree) {
  if (is_view() || def().is_dynamic) GTEST_SKIP() << "no kernel runs";
  const std::vector<ShortSample> short_ones = short_samples(def(), sample());
  if (short_ones.empty()) GTEST_SKIP() << "no kernel for f16 or bf16";
  for (const ShortSample& one : short_ones) {
    const PreparedKernel kernel = prepare_all_kernels(*one.built.node, cpu()).front();
    const std::vector<Tensor> found = evaluate(kernel, *one.built.node, one.built.node_inputs);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i].defined()) continue;
      expect_close(found[i], one.wanted[i], one.allowed, text(one.type, " output ", i));
    }
  }
}

/// Inference without any known dim or constant must not contradict the concrete one.
TEST_P(SampleTest, UnknownShapesInferNothingFalse) {
  const SampleGraph concrete = make(DType::f32);
  const std::vector<Tensor> results = def().is_dynamic ? call(concrete) : std::vector<Tensor>();
  auto unknown = concrete.graph->clone();
  Node& node = *unknown->nodes().front();
  for (Value* input : unknown->inputs()) {
    input->set_type({input->dtype(),
                     SymShape(std::vector<Dim>(static_cast<std::size_t>(input->shape()->rank())))});
  }
  for (Value* initializer : unknown->initializers()) initializer->is_variable = true;
  infer(node);
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) == nullptr) continue;
    const ValueType& found = node.output(i)->type();
    const Shape wanted = def().is_dynamic ? results[static_cast<std::size_t>(i)].shape()
                                          : concrete.node->output(i)->known_shape();
    if (found.dtype != DType::undefined) {
      EXPECT_EQ(found.dtype, concrete.node->output(i)->dtype());
    }
    if (!found.shape) continue;
    ASSERT_EQ(found.shape->rank(), wanted.rank());
    for (int axis = 0; axis < wanted.rank(); ++axis) {
      if ((*found.shape)[axis].is_known()) {
        EXPECT_EQ((*found.shape)[axis].value(), wanted[axis]);
      }
    }
  }
}

/// f64 gradients against central differences for every set of inputs.
TEST_P(SampleTest, GradientsAgree) {
  if (def().backward.refusal() != nullptr) GTEST_SKIP() << def().backward.refusal()->why;
  if (!sample().no_gradient_check.empty()) GTEST_SKIP() << sample().no_gradient_check;
  const SampleGraph built = make(DType::f64);
  if (def().is_dynamic && !built.node->output()->shape()->known()) {
    GTEST_SKIP() << "its shape depends on data";
  }
  if (built.float_inputs.empty()) GTEST_SKIP() << "no float input";
  const std::size_t count = built.float_inputs.size();
  const std::size_t most_masked = 5;  // above: each input alone, then all
  const std::size_t masks = std::size_t{1} << std::min(count, most_masked);
  std::vector<std::vector<int>> sets;
  if (count <= most_masked) {
    for (std::size_t mask = 1; mask < masks; ++mask) {
      std::vector<int>& set = sets.emplace_back();
      for (std::size_t i = 0; i < count; ++i) {
        if ((mask >> i & 1U) != 0) set.push_back(built.float_inputs[i]);
      }
    }
  } else {
    for (const int input : built.float_inputs) sets.push_back({input});
    sets.push_back(built.float_inputs);
  }
  RecordProperty("gradient_masks", static_cast<int>(sets.size()));
  for (const std::vector<int>& set : sets) {
    for (const std::string& problem :
         autograd::check_gradients(*built.graph, built.graph_inputs, set)) {
      ADD_FAILURE() << problem;
    }
  }
}

/// Output and workspace buffers with guard bytes around them.
class GuardedRun {
 public:
  explicit GuardedRun(const SampleGraph& sample, const PreparedKernel& kernel)
      : sample_(sample), kernel_(kernel), workspace_(guarded(kernel.workspace_bytes)) {
    for (int i = 0; i < sample.node->output_count(); ++i) {
      const Value* const output = sample.node->output(i);
      bytes_.push_back(output == nullptr ? 0
                                         : bytes_of(output->dtype(), output->known_shape().size()));
      outputs_.push_back(guarded(bytes_.back()));
    }
  }

  /// Runs with output `alias.output` in the memory of input `alias.input`; a null alias: apart.
  void run(const Alias* alias) {
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const Tensor& input : sample_.node_inputs) {
      inputs.push_back(input.defined() ? input.data() : nullptr);
    }
    for (int i = 0; i < sample_.node->output_count(); ++i) {
      outputs.push_back(sample_.node->output(i) == nullptr ? nullptr : inside(outputs_[index(i)]));
    }
    if (alias != nullptr) {
      void* const shared = outputs[index(alias->output)];
      std::memcpy(shared, inputs[index(alias->input)], bytes_[index(alias->output)]);
      inputs[index(alias->input)] = shared;
    }
    const RunState state;
    kernel_.run({inputs, outputs, inside(workspace_), &state});
  }

  std::vector<std::byte> result(int output) {
    const auto* const start = static_cast<std::byte*>(inside(outputs_[index(output)]));
    return {start, start + bytes_[index(output)]};
  }

  bool guards_intact() const {
    bool intact = is_intact(workspace_, kernel_.workspace_bytes);
    for (std::size_t i = 0; i < outputs_.size(); ++i) intact &= is_intact(outputs_[i], bytes_[i]);
    return intact;
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::byte kPattern{0xa5};

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static Tensor guarded(std::size_t bytes) {
    Tensor buffer = Tensor::empty(DType::u8, {static_cast<std::int64_t>(bytes + 2 * kGuard)});
    std::memset(buffer.data(), static_cast<int>(kPattern), buffer.bytes());
    return buffer;
  }
  static void* inside(const Tensor& buffer) {
    return static_cast<std::byte*>(buffer.data()) + kGuard;
  }
  static bool is_intact(const Tensor& buffer, std::size_t bytes) {
    const auto* const start = static_cast<const std::byte*>(buffer.data());
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (start[i] != kPattern || start[kGuard + bytes + i] != kPattern) return false;
    }
    return true;
  }

  const SampleGraph& sample_;
  const PreparedKernel& kernel_;
  std::vector<std::size_t> bytes_;
  std::vector<Tensor> outputs_;
  Tensor workspace_;
};

/// The kernel stays within its buffers and computes the same in place as apart.
void expect_in_place_agrees(const OpDef& def, const SampleGraph& built,
                            const PreparedKernel& kernel) {
  GuardedRun apart(built, kernel);
  apart.run(nullptr);
  EXPECT_TRUE(apart.guards_intact()) << kernel.name << " writes outside its buffers";
  for (const Alias& alias : def.aliases) {
    const Value* const output = built.node->output(alias.output);
    const Value* const input = built.node->input(alias.input);
    if (output == nullptr || input == nullptr || input->dtype() != output->dtype() ||
        input->known_shape() != output->known_shape()) {
      continue;
    }
    GuardedRun shared(built, kernel);
    shared.run(&alias);
    EXPECT_TRUE(shared.guards_intact()) << kernel.name << " writes outside its buffers";
    for (int i = 0; i < built.node->output_count(); ++i) {
      EXPECT_EQ(apart.result(i), shared.result(i))
          << kernel.name << " output " << i << " with output " << alias.output
          << " in the memory of input " << alias.input;
    }
  }
}

/// In row-major order, and in channels-last order where the op has it.
void expect_buffers_may_alias(const OpDef& def, SampleGraph built) {
  do {
    for (const PreparedKernel& kernel : prepare_all_kernels(*built.node, cpu())) {
      expect_in_place_agrees(def, built, kernel);
    }
  } while (lay_in_rows(built, def.layout));
}

TEST_P(SampleTest, BuffersMayAlias) {
  if (is_view()) GTEST_SKIP() << "a view: no kernel runs";
  if (def().is_dynamic) GTEST_SKIP() << "it returns new tensors";
  for (const DType dtype : {DType::f32, DType::f64}) expect_buffers_may_alias(def(), make(dtype));
  for (const DType dtype : {DType::f16, DType::bf16}) {
    auto built = short_sample_graph(def(), sample(), dtype);
    if (built) expect_buffers_may_alias(def(), std::move(*built));
  }
}

/// Kernels compute the same when these operands lie in channels-last order.
void expect_same_in_rows(const SampleGraph& built, const std::vector<Value*>& images,
                         const std::vector<Tensor>& wanted, const Sample& sample) {
  for (Value* image : images) image->layout = Layout::channels_last;
  const std::vector<Tensor> inputs = inputs_as_laid_out(built);
  for (const PreparedKernel& kernel : prepare_all_kernels(*built.node, cpu())) {
    const std::vector<Tensor> found = evaluate(kernel, *built.node, inputs);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i].defined()) continue;
      const Value* const output = built.node->output(static_cast<int>(i));
      expect_close(relaid(found[i], output->layout, Layout::row_major), wanted[i], sample,
                   text(kernel.name, " output ", i, ", images in rows: ", images.size()));
    }
  }
  for (Value* image : images) image->layout = Layout::row_major;
}

/// All operands at once, in 16-bit floats too; and where each may lie in an order of its own, one
/// after the other.
TEST_P(SampleTest, LayoutsAgree) {
  if (def().layout.kind == LayoutRule::Kind::row_major || is_view()) {
    GTEST_SKIP() << "takes row-major operands alone";
  }
  const SampleGraph built = make(DType::f32);
  const std::vector<Tensor> wanted = evaluate(*built.node, built.node_inputs);
  const std::vector<Value*> images = images_of(built, def().layout);
  if (images.empty()) GTEST_SKIP() << "no operand whose layout matters";
  expect_same_in_rows(built, images, wanted, sample());
  for (const ShortSample& one : short_samples(def(), sample())) {
    expect_same_in_rows(one.built, images_of(one.built, def().layout), one.wanted, one.allowed);
  }
  if (def().layout.kind != LayoutRule::Kind::each || images.size() == 1) return;
  for (Value* image : images) expect_same_in_rows(built, {image}, wanted, sample());
}

INSTANTIATE_TEST_SUITE_P(Sweep, SampleTest,
                         testing::ValuesIn(sample_cases([](const OpDef&) { return true; })),
                         case_name);

}  // namespace
}  // namespace graft::test

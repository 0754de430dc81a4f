#include "core/ops/register_op.h"

#include <gmock/gmock.h>

#include "core/graph/model.h"
#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// y = factor * x, for f32.
RunFunction make_scale(const KernelRequest& request) {
  if (request.dtype() != DType::f32) return {};
  const float factor = request.attributes().get_float("factor", 2.0F);
  return [factor](std::int64_t count, std::span<const RunOperand> x, void* y) {
    const auto* const from = static_cast<const float*>(x[0].elements);
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<float*>(y)[i] = factor * from[i * x[0].step];
    }
  };
}

Kernel take_nothing(KernelRequest& /*request*/) {
  return {};
}

OpDef row(std::string_view name) {
  return {.name = name,
          .domain = "com.example",
          .since = {{1}},
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .infer = infer_same,
          .layout = kElementwise,
          .backward = NotDifferentiable{"a test has no use for it"},
          .samples = nullptr};
}

/// What a program does at the start of main: no test has run yet, and no op was looked up.
class Program : public testing::Environment {
 public:
  void SetUp() override {
    register_op(row("Scale"), {{.name = "none", .make = take_nothing},
                               {.name = "plain", .make_run = make_scale}});
    register_kernel({.op = "Sinh", .name = "own", .make = take_nothing});
    expect_refusal("op com.example::Scale is registered twice",
                   [] { register_op(row("Scale"), {}); });
    expect_refusal("wants a name", [] { register_op(row(""), {}); });
    expect_refusal("wants a name, an inference", [] {
      OpDef without = row("Without");
      without.infer = nullptr;
      register_op(without, {});
    });
    expect_refusal("a domain other than ai.graft", [] {
      OpDef internal = row("Internal");
      internal.domain = kInternalDomain;
      register_op(internal, {});
    });
    expect_refusal("do not depend on data", [] {
      OpDef dynamic = row("Dynamic");
      dynamic.is_dynamic = true;
      register_op(dynamic, {});
    });
    expect_refusal("a kernel of 'Neither' has neither make and make_run",
                   [] { register_op(row("Neither"), {{.name = "x"}}); });
    expect_refusal("op 'com.example::Neither', which is not known", [] {
      register_kernel({.op = "Neither", .domain = "com.example", .make = take_nothing});
    });
  }

 private:
  template <class Action>
  static void expect_refusal(const char* why, const Action& action) {
    EXPECT_THAT(error_of(action).what(), HasSubstr(why));
  }
};

const testing::Environment* const program = testing::AddGlobalTestEnvironment(new Program);

TEST(RegisterOp, IsRefusedOnceOpsWereLookedUp) {
  ASSERT_NE(OpRegistry::instance().find("Relu"), nullptr);
  const Error late = error_of([] { register_op(row("Late"), {}); });
  EXPECT_EQ(late.kind(), ErrorKind::argument);
  EXPECT_THAT(late.what(), HasSubstr("op 'com.example::Late' is registered too late"));
  EXPECT_THAT(error_of([] { register_kernel({.op = "Sinh", .make = take_nothing}); }).what(),
              HasSubstr("a kernel of 'Sinh' is registered too late"));
}

TEST(RegisterOp, ARowWithoutSamplesHasAnEmptyList) {
  EXPECT_TRUE(OpRegistry::instance().find("Scale", "com.example")->samples().empty());
}

TEST(RegisterOp, KernelsAreAskedInOrderAndBeforeThoseOfGraft) {
  const auto names = [](std::string_view op, std::string_view domain) {
    std::vector<std::string> found;
    for (const KernelDef& def : KernelRegistry::instance().find(DeviceKind::cpu, op, domain)) {
      found.emplace_back(def.name);
    }
    return found;
  };
  EXPECT_THAT(names("Scale", "com.example"), ElementsAre("none", "plain"));
  EXPECT_EQ(names("Sinh", "").front(), "own");
  EXPECT_EQ(OpRegistry::instance().find("Neither", "com.example"), nullptr);
}

TEST(RegisterOp, ASessionRunsIt) {
  Model model;
  model.set_opset("", 17);
  model.set_opset("com.example", 1);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("N")}});
  graph.add_output(graph.add_node("Scale", "com.example", {x}, {"y"}, {{"factor", 3.0}})->output());
  const Tensor y = Session(model).run({Tensor::from<float>({3}, {1, -2, 0.5F})}).front();
  EXPECT_THAT(to_double(y), ElementsAre(3.0, -6.0, 1.5));
}

TEST(RegisterOp, AnElementwiseKernelJoinsChains) {
  Graph graph;
  Builder builder(graph);
  const Expr x = builder.expr(graph.add_input("x", {DType::f32, SymShape{4}}));
  const Expr scaled = call_multi("Scale", "com.example", {x}, 1).front();
  graph.add_output((scaled + x).value());
  passes::fuse_chains(graph, cpu());
  EXPECT_EQ(graph.node_count(), 1U);
  EXPECT_THAT(print(graph), HasSubstr("com.example.Scale(x)"));
}

}  // namespace
}  // namespace graft

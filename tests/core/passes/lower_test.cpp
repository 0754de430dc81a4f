// What rows write is held against the kernels by tests/sweep/lowering_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/graph/print.h"
#include "core/passes/pass.h"
#include "tests/core/error_of.h"
#include "tests/core/passes/small_net.h"

namespace graft {
namespace {

TEST(Lower, WritesOpsOfGraftInThoseOfOnnx) {
  test::SmallNet net;
  const Expr y = net.input("y", {2, 3});
  const Expr dy = net.input("dy", {2, 3});
  net.graph.add_output(call_internal("SigmoidGrad", {y, dy}).value());
  EXPECT_TRUE(passes::lower(net.graph));
  EXPECT_TRUE(std::ranges::all_of(net.graph.nodes(), [](const auto& node) {
    return node->domain().empty();
  })) << print(net.graph);
  EXPECT_TRUE(net.graph.outputs()[0]->producer()->is("Mul"));
  EXPECT_FALSE(passes::lower(net.graph)) << "nothing is left to do";
}

TEST(Lower, TablesMustNotFillTheMemory) {
  constexpr std::int64_t kMany = std::int64_t{1} << 30;
  using Ints = std::vector<std::int64_t>;
  test::SmallNet net;
  net.graph.add_output(call_internal("AveragePoolGrad", {net.input("dy", {1, 1, kMany})},
                                     {{"kernel_shape", Ints{kMany}},
                                      {"pads", Ints{kMany - 1, kMany - 1}},
                                      {"shape", Ints{1, 1, 1}}})
                           .value());
  EXPECT_EQ(error_of([&] { passes::lower(net.graph); }).kind(), ErrorKind::unsupported);
  test::SmallNet loss;
  const Expr labels = loss.builder.expr(loss.graph.add_input("labels", {DType::i64, SymShape{0}}));
  loss.graph.add_output(
      call_internal("CrossEntropyGrad", {loss.input("dy", {}), loss.input("x", {0, kMany}), labels})
          .value());
  EXPECT_EQ(error_of([&] { passes::lower(loss.graph); }).kind(), ErrorKind::unsupported);
}

TEST(Lower, NamesAllOpsThatOnnxLacks) {
  test::SmallNet net;
  Value* const x = net.input("x", {2, 3}).value();
  for (const char* op : {"DropoutTraining", "CumProdGrad", "DropoutTraining"}) {
    net.graph.add_node(op, kInternalDomain, {x}, {net.graph.unique_name(op)});
  }
  const Error error = error_of([&] { passes::lower(net.graph); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_STREQ(error.what(),
               "this step cannot be written in ops of ONNX: it needs CumProdGrad, DropoutTraining");
}

}  // namespace
}  // namespace graft

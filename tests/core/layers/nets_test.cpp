#include "core/layers/nets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/graph/verify.h"
#include "core/runtime/session.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using ::testing::HasSubstr;

/// What trains: all but the running statistics.
std::int64_t parameter_count(const Model& model) {
  std::int64_t count = 0;
  for (const Value* value : model.graph().initializers()) {
    const bool is_trained = value->name().ends_with("weight") || value->name().ends_with("bias");
    if (is_trained) count += value->initializer().size();
  }
  return count;
}

TEST(Nets, HaveTheParametersThatTheirPapersCount) {
  // 784*256+256 + 256*128+128 + 128*10+10
  EXPECT_EQ(parameter_count(make_net("mlp", {1, 28, 28}, 10)), 235'146);
  // 20*25+20 + 50*20*25+50 + 800*500+500 + 500*10+10
  EXPECT_EQ(parameter_count(make_net("lenet", {1, 28, 28}, 10)), 431'080);
  // As torchvision counts.
  EXPECT_EQ(parameter_count(make_net("resnet18", {3, 224, 224}, 1000)), 11'689'512);
  // With a stem of 64*27 instead of 64*147 weights, and 513*990 fewer in the classifier.
  EXPECT_EQ(parameter_count(make_net("resnet18", {3, 32, 32}, 10)), 11'173'962);
  // As torchvision counts.
  EXPECT_EQ(parameter_count(make_net("mobilenetv2", {3, 224, 224}, 1000)), 3'504'872);
  // 269,722 with option A, and projections of 16*32 + 64 and 32*64 + 128.
  EXPECT_EQ(parameter_count(make_net("resnet20", {3, 32, 32}, 10)), 272'474);
}

TEST(Nets, HaveANamedBatchAndLogits) {
  for (const Net& net : nets()) {
    const Model model = make_net(net.name, {3, 32, 32}, 7);
    const Graph& graph = model.graph();
    ASSERT_EQ(graph.inputs().size(), 1U) << net.name;
    EXPECT_EQ(graph.inputs()[0]->name(), "input");
    EXPECT_EQ(graph.inputs()[0]->shape(), (SymShape{Dim("N"), 3, 32, 32})) << net.name;
    ASSERT_EQ(graph.outputs().size(), 1U) << net.name;
    EXPECT_EQ(graph.outputs()[0]->name(), "logits");
    EXPECT_EQ(graph.outputs()[0]->type(), (ValueType{DType::f32, SymShape{Dim("N"), 7}}))
        << net.name;
    std::set<std::string> names;
    for (const auto& node : graph.nodes()) EXPECT_TRUE(names.insert(node->name()).second);
    verify(model);
  }
}

TEST(Nets, Run) {
  for (const Net& net : nets()) {
    Session session(make_net(net.name, {3, 32, 32}, 7, 1));
    const Tensor logits =
        session.run(std::vector{Tensor::full(DType::f32, {2, 3, 32, 32}, 0.5)}).at(0);
    ASSERT_EQ(logits.shape(), (Shape{2, 7})) << net.name;
    const std::vector<double> values = to_double(logits);
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_LT(std::abs(values[i]), 100) << net.name;
      EXPECT_EQ(values[i], values[i + 7]) << net.name;  // two equal samples
    }
    EXPECT_NE(values[0], values[1]) << net.name;
  }
}

TEST(Nets, AreTheSameForTheSameSeed) {
  const Model one = make_net("resnet20", {3, 32, 32}, 10, 1);
  const Model again = make_net("resnet20", {3, 32, 32}, 10, 1);
  const Model two = make_net("resnet20", {3, 32, 32}, 10, 2);
  for (const char* name : {"layer3.2.conv2.weight", "fc.weight", "fc.bias"}) {
    const Tensor& weight = one.graph().find(name)->initializer();
    EXPECT_TRUE(equal_bits(weight, again.graph().find(name)->initializer())) << name;
    EXPECT_FALSE(equal_bits(weight, two.graph().find(name)->initializer())) << name;
  }
}

TEST(Nets, RefuseWhatTheyCannotTake) {
  EXPECT_THAT(error_of([] {
                make_net("resnet19", {3, 32, 32}, 10);
              }).what(),
              HasSubstr("no net is called 'resnet19'; nets are: 'mlp', 'lenet'"));
  EXPECT_EQ(kind_of([] { make_net("mlp", {4}, 0); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([] { make_net("mlp", {}, 2); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([] { make_net("mlp", {3, 0}, 2); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([] { make_net("lenet", {784}, 10); }), ErrorKind::shape);
  for (const char* net : {"lenet", "resnet18", "resnet20", "mobilenetv2"}) {
    EXPECT_EQ(kind_of([&] { make_net(net, {64, 64}, 10); }), ErrorKind::shape) << net;
  }
  EXPECT_EQ(kind_of([] { make_net("lenet", {1, 8, 8}, 10); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { make_net("resnet18", {}, 10); }), ErrorKind::argument);
  EXPECT_EQ(parameter_count(make_net("mlp", {4}, 2)), 4 * 256 + 256 + 256 * 128 + 128 + 258);
}

}  // namespace
}  // namespace graft

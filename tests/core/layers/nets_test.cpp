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
  // As DeiT counts its smallest; as torchvision counts a VisionTransformer of these sizes.
  EXPECT_EQ(parameter_count(make_net("vit", {3, 224, 224}, 1000)) + 192 + 197 * 192, 5'717'416);
  EXPECT_EQ(parameter_count(make_net("unet", {3, 32, 32}, 2)), 31'037'698);
  // 269,722 with option A, and projections of 16*32 + 64 and 32*64 + 128.
  EXPECT_EQ(parameter_count(make_net("resnet20", {3, 32, 32}, 10)), 272'474);
}

/// Nets that give a number a class for an image, but for the largest, which the oracles run.
std::vector<Net> classifiers() {
  const std::set<std::string_view> others{"unet", "tinyyolov2", "crnn", "vgg11", "vgg16"};
  std::vector<Net> found;
  for (const Net& net : nets()) {
    if (!net.takes_tokens && !others.contains(net.name)) found.push_back(net);
  }
  return found;
}

TEST(Nets, HaveANamedBatchAndLogits) {
  EXPECT_EQ(classifiers().size(), 7U);
  for (const Net& net : classifiers()) {
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

TEST(Nets, GiveWhatTheirTaskWants) {
  const auto output_of = [](const char* net, const Shape& input, std::int64_t classes) {
    const Model model = make_net(net, input, classes);
    verify(model);
    EXPECT_EQ(model.graph().inputs()[0]->dtype(), input.rank() == 1 ? DType::i64 : DType::f32);
    return *model.graph().outputs()[0]->shape();
  };
  EXPECT_EQ(output_of("unet", {1, 32, 48}, 3), (SymShape{Dim("N"), 3, 32, 48}));
  EXPECT_EQ(output_of("tinyyolov2", {3, 64, 96}, 20), (SymShape{Dim("N"), 125, 2, 3}));
  EXPECT_EQ(output_of("crnn", {1, 32, 100}, 37), (SymShape{26, Dim("N"), 37}));
  EXPECT_EQ(output_of("bert", {24}, 3), (SymShape{Dim("N"), 3}));
  EXPECT_EQ(output_of("gpt", {24}, 50), (SymShape{Dim("N"), 24, 50}));
}

TEST(Nets, Run) {
  for (const Net& net : classifiers()) {
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
  for (const char* net : {"lenet", "resnet18", "resnet20", "mobilenetv2", "vgg11", "vgg16", "unet",
                          "vit", "tinyyolov2", "iresnet18", "crnn", "bert", "gpt"}) {
    EXPECT_EQ(kind_of([&] { make_net(net, {64, 64}, 10); }), ErrorKind::shape) << net;
  }
  EXPECT_EQ(kind_of([] { make_net("lenet", {1, 8, 8}, 10); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { make_net("vgg11", {3, 16, 16}, 10); }), ErrorKind::shape);
  const auto refusal = [](const char* net, const Shape& input) {
    return std::string(error_of([&] { make_net(net, input, 10); }).what());
  };
  EXPECT_THAT(refusal("unet", {3, 40, 32}), HasSubstr("sides of 40 and 32 pixels, wanted multi"));
  EXPECT_THAT(refusal("crnn", {1, 28, 100}), HasSubstr("an image of height 28, wanted 32"));
  EXPECT_THAT(refusal("gpt", {3, 32, 32}), HasSubstr("is no text, wanted its length, such as 64"));
  EXPECT_EQ(kind_of([] { make_net("resnet18", {}, 10); }), ErrorKind::argument);
  EXPECT_EQ(parameter_count(make_net("mlp", {4}, 2)), 4 * 256 + 256 + 256 * 128 + 128 + 258);
}

TEST(Nets, RefuseMoreClassesThanTheyCanCount) {
  const std::int64_t many = std::int64_t{1} << 62;  // five boxes of as many numbers
  const Error error = error_of([&] { make_net("tinyyolov2", {3, 32, 32}, many); });
  EXPECT_EQ(error.kind(), ErrorKind::argument);
  EXPECT_THAT(error.what(), HasSubstr("at most 2147483647"));
}

}  // namespace
}  // namespace graft

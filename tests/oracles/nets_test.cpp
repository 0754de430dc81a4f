// Nets against PyTorch's modules: nets.json, written by make_nets.py, where weights and inputs of
// both sides come from.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/layers/nets.h"
#include "core/runtime/session.h"

namespace graft {
namespace {

using nlohmann::json;

const json& cases() {
  static const json all =
      json::parse(std::ifstream(std::string(GRAFT_SOURCE_DIR) + "/tests/oracles/nets.json"));
  return all;
}

std::uint32_t bits(std::uint32_t key, std::uint32_t index) {
  std::uint32_t h = index * 2654435761U + key;
  h ^= h >> 15U;
  h *= 2246822519U;
  return h ^ (h >> 13U);
}

std::uint32_t key_of(std::string_view name) {
  std::uint32_t sum = 0;
  for (const char c : name) sum += static_cast<unsigned char>(c);
  return sum * 40503U;
}

/// From -1 to 1.
double number(std::uint32_t key, std::uint32_t index) {
  return 2 * (bits(key, index) / 4294967296.0) - 1;
}

Tensor pattern(const std::string& name, const Shape& shape) {
  const std::int64_t longest = *std::ranges::max_element(shape);
  double offset = 0;
  double scale = std::sqrt(3.0 * static_cast<double>(longest) / static_cast<double>(shape.size()));
  if (name.ends_with("running_var")) {
    offset = 1;
    scale = 0.5;
  } else if (name.ends_with("running_mean") || name.ends_with("bias")) {
    scale = 0.1;
  } else if (shape.size() == longest) {
    offset = 1;
    scale = 0.1;
  }
  const std::uint32_t key = key_of(name);
  Tensor tensor = Tensor::empty(DType::f32, shape);
  std::uint32_t index = 0;
  for (float& value : tensor.values<float>()) {
    value = static_cast<float>(offset + scale * number(key, index++));
  }
  return tensor;
}

Tensor input_of(const json& one) {
  auto dims = one.at("input").get<std::vector<std::int64_t>>();
  dims.insert(dims.begin(), 2);
  const auto vocabulary = one.at("vocabulary").get<std::uint32_t>();
  if (vocabulary == 0) {
    Tensor image = Tensor::empty(DType::f32, Shape(dims));
    std::uint32_t index = 0;
    for (float& value : image.values<float>()) {
      value = static_cast<float>(number(key_of("input"), index++));
    }
    return image;
  }
  Tensor tokens = Tensor::empty(DType::i64, Shape(dims));
  std::uint32_t index = 0;
  for (std::int64_t& token : tokens.values<std::int64_t>()) {
    token = bits(key_of("input"), index++) % vocabulary;
  }
  return tokens;
}

/// Parameters by name and shape, and the ops that compute, in their order.
void expect_structure(const Model& model, const json& one) {
  std::map<std::string, Shape> parameters;
  for (const Value* value : model.graph().initializers()) {
    if (value->dtype() == DType::f32 && value->initializer().rank() > 0) {
      parameters[value->name()] = value->known_shape();
    }
  }
  std::map<std::string, Shape> wanted;
  for (const auto& [name, shape] : one.at("parameters").items()) {
    wanted[name] = Shape(shape.get<std::vector<std::int64_t>>());
  }
  EXPECT_EQ(parameters, wanted);

  const auto wanted_ops = one.at("ops").get<std::vector<std::string>>();
  const std::set<std::string> kinds{"Conv",  "ConvTranspose", "MatMul",
                                    "Relu",  "LeakyRelu",     "BatchNormalization",
                                    "PRelu", "MaxPool",       "LayerNormalization",
                                    "LSTM",  "Softmax",       "LogSoftmax",
                                    "Erf",   "Tanh"};
  std::vector<std::string> ops;
  for (const auto& node : model.graph().nodes()) {
    const std::string op = node->is("Gemm") ? "MatMul" : std::string(node->op_type());
    if (kinds.contains(op)) ops.push_back(op);
  }
  EXPECT_EQ(ops, wanted_ops);
}

class NetsOfPyTorch : public ::testing::TestWithParam<int> {};

TEST_P(NetsOfPyTorch, AreMadeAndComputeAsItsModules) {
  const json& one = cases().at(static_cast<std::size_t>(GetParam()));
  Model model =
      make_net(one.at("net").get<std::string>(),
               Shape(one.at("input").get<std::vector<std::int64_t>>()), one.at("classes"));
  expect_structure(model, one);
  for (const auto& [name, shape] : one.at("parameters").items()) {
    Value* const value = model.graph().find(name);
    ASSERT_NE(value, nullptr) << name;
    value->set_initializer(pattern(name, value->known_shape()));
  }
  const Tensor found = Session(model).run(std::vector{input_of(one)}).at(0);
  const json& output = one.at("output");
  ASSERT_EQ(found.shape(), Shape(output.at("shape").get<std::vector<std::int64_t>>()));
  const auto wanted = output.at("values").get<std::vector<double>>();
  const double tolerance = 1e-5 * output.at("largest").get<double>();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_NEAR(found.values<const float>()[i], wanted[i], tolerance) << i;
  }
}

std::string name_of(const ::testing::TestParamInfo<int>& one) {
  return cases().at(static_cast<std::size_t>(one.param)).at("net");
}

INSTANTIATE_TEST_SUITE_P(All, NetsOfPyTorch, ::testing::Range(0, 9), name_of);

TEST(NetsOfPyTorch, AreAllThatHaveACase) {
  std::set<std::string> wanted;
  for (const Net& net : nets()) wanted.emplace(net.name);
  for (const char* older : {"mlp", "lenet", "resnet18", "resnet20", "mobilenetv2"}) {
    wanted.erase(older);  // their counts and names are held in core
  }
  std::set<std::string> found;
  for (const json& one : cases()) found.insert(one.at("net"));
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace graft

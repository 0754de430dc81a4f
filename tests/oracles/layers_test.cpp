// Layers on what PyTorch's modules got: layers.json, written by make_layers.py.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/graph/verify.h"
#include "core/layers/layer_context.h"
#include "core/layers/parse.h"
#include "core/runtime/session.h"

namespace graft {
namespace {

using nlohmann::json;

const json& cases() {
  static const json all =
      json::parse(std::ifstream(std::string(GRAFT_SOURCE_DIR) + "/tests/oracles/layers.json"));
  return all;
}

Tensor tensor_of(const json& from, DType dtype) {
  const Shape shape(from.at("shape").get<std::vector<std::int64_t>>());
  return Tensor::from(shape, from.at("values").get<std::vector<double>>()).cast(dtype);
}

/// The layer as "y" behind an input whose batch is open, with PyTorch's weights.
Model model_of(const json& one, std::int64_t opset) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  const Shape shape(one.at("input").at("shape").get<std::vector<std::int64_t>>());
  std::vector<Dim> dims(shape.begin(), shape.end());
  dims[0] = Dim("N");
  const bool is_float = one.at("input").at("dtype") == "f32";
  Value* const x =
      graph.add_input("x", {is_float ? DType::f32 : DType::i64, SymShape(std::move(dims))});
  LayerContext context(graph, opset);
  graph.add_output(
      add_layers(context, parse_layers(one.at("layer").get<std::string>() + ":name=y"), x));
  for (const auto& [name, weight] : one.at("weights").items()) {
    Value* const value = graph.find(name);
    if (value == nullptr) throw std::runtime_error("no parameter " + name);
    const Tensor given = tensor_of(weight, DType::f32);
    // GroupNorm's are [C,1,1] where it is spelled out.
    value->set_initializer(Tensor::from(value->known_shape(), to_double(given)).cast(DType::f32));
  }
  return model;
}

/// Float initializers that the case does not name: none but numbers of a formula.
void check_names(const Model& model, const json& one) {
  for (const Value* value : model.graph().initializers()) {
    if (value->dtype() != DType::f32 || value->initializer().rank() == 0) continue;
    EXPECT_TRUE(one.at("weights").contains(value->name())) << value->name();
  }
}

class Layers : public ::testing::TestWithParam<int> {};

TEST_P(Layers, ComputeWhatPyTorchDoes) {
  const json& one = cases().at(static_cast<std::size_t>(GetParam()));
  const bool is_float = one.at("input").at("dtype") == "f32";
  const Tensor input = tensor_of(one.at("input"), is_float ? DType::f32 : DType::i64);
  const Tensor wanted = tensor_of(one.at("output"), DType::f32);
  for (const std::int64_t opset : {9, 11, 13, 17, 18, 21}) {
    SCOPED_TRACE(one.at("layer").get<std::string>() + " in opset " + std::to_string(opset));
    const Model model = model_of(one, opset);
    verify(model);
    check_names(model, one);
    const Value* const output = model.graph().outputs()[0];
    ASSERT_TRUE(output->shape());
    ASSERT_EQ(output->shape()->rank(), wanted.rank());
    for (int axis = 1; axis < wanted.rank(); ++axis) {
      EXPECT_TRUE((*output->shape())[axis].same_as(wanted.shape()[axis])) << output->type();
    }
    Session session(model);
    const Tensor found = session.run(std::vector{input}).at(0);
    ASSERT_EQ(found.shape(), wanted.shape());
    const std::vector<double> a = to_double(found);
    const std::vector<double> b = to_double(wanted);
    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Layers, ::testing::Range(0, 18));

TEST(LayerVectors, AllAreRun) {
  EXPECT_EQ(cases().size(), 18U);
}

}  // namespace
}  // namespace graft

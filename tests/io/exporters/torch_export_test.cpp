#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/graph/verify.h"
#include "io/onnx.h"
#include "tests/core/growth.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

/// A node that adds the initializer, with what PyTorch's exporter writes of its call.
std::string adding(const std::string& from, const std::string& initializer, const std::string& to,
                   const std::string& arguments) {
  const std::string call = "%linear : [num_users=1] = call_function[target=torch.ops.aten.linear." +
                           std::string("default](args = (%x, ") + arguments + "), kwargs = {})";
  return "node { op_type: 'Add' input: '" + from + "' input: '" + initializer + "' output: '" + to +
         "' metadata_props { key: 'pkg.torch.onnx.fx_node' value: '" + call + "' } } ";
}

std::string initializer(const std::string& name) {
  return "initializer { name: '" + name + "' data_type: 1 dims: 2 float_data: 1 float_data: 1 } ";
}

/// x -> a -> b -> y, each adds one initializer.
Model model_of(const std::string& nodes, const std::string& initializers) {
  const std::string type =
      " type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ";
  return import(
      graph_model("input { name: 'x'" + type + "output { name: 'y'" + type + nodes + initializers));
}

std::string name_read(const Model& model, const std::string& output) {
  return model.graph().find(output)->producer()->input(1)->name();
}

TEST(TorchMerges, ReadersOfOtherParametersGetTheirOwn) {
  Model model =
      model_of(adding("x", "Layers.0.bias", "a", "%p_layers_0_weight, %p_layers_0_bias") +
                   adding("a", "Layers.0.bias", "b", "%p_layers_1_weight, %p_layers_1_bias") +
                   adding("b", "Layers.0.bias", "y", "%p_layers_1_bias"),
               initializer("Layers.0.bias"));
  EXPECT_EQ(onnx::separate_merged(model.graph()), 1U);
  EXPECT_EQ(name_read(model, "a"), "Layers.0.bias");
  EXPECT_EQ(name_read(model, "b"), "layers_1_bias");
  EXPECT_EQ(name_read(model, "y"), "layers_1_bias");
  const Tensor& kept = model.graph().find("Layers.0.bias")->initializer();
  const Tensor& own = model.graph().find("layers_1_bias")->initializer();
  EXPECT_NE(kept.data(), own.data());
  EXPECT_EQ(own.values<const float>()[1], 1.0F);
  verify(model.graph());
  EXPECT_EQ(onnx::separate_merged(model.graph()), 0U);
}

/// The second names what joins the first and the third.
TEST(TorchMerges, WhatIsTiedStaysTied) {
  Model model = model_of(adding("x", "w", "a", "%p_embed_weight") +
                             adding("a", "w", "b", "%p_head_bias, %p_embed_weight") +
                             adding("b", "w", "y", "%p_head_bias"),
                         initializer("w"));
  EXPECT_EQ(onnx::separate_merged(model.graph()), 0U);
}

TEST(TorchMerges, TheOwnerKeepsItAndTheSilentStayWithIt) {
  Model model = model_of(adding("x", "late.bias", "a", "%p_early_bias") +
                             adding("a", "late.bias", "b", "%p_late_bias") +
                             adding("b", "late.bias", "y", "%other"),
                         initializer("late.bias"));
  EXPECT_EQ(onnx::separate_merged(model.graph()), 1U);
  EXPECT_EQ(name_read(model, "a"), "early_bias");
  EXPECT_EQ(name_read(model, "b"), "late.bias");
  EXPECT_EQ(name_read(model, "y"), "late.bias");
}

/// A copy must not train because the file was written and read in between.
TEST(TorchMerges, CopiesKeepTheirKindInFiles) {
  Model model = model_of(
      adding("x", "a.mask", "h", "%b_a_mask") + adding("h", "a.mask", "y", "%b_b_mask"),
      initializer("a.mask") +
          "value_info { name: 'a.mask' type { tensor_type { elem_type: 1 shape { dim { dim_value: "
          "2 "
          "} } } } metadata_props { key: 'pkg.torch.export.graph_signature.InputSpec.kind' value: "
          "'BUFFER' } } ");
  EXPECT_EQ(onnx::separate_merged(model.graph()), 1U);
  const Model read = import(exported(model));
  for (const Model* one : {&std::as_const(model), &read}) {
    const Value& mask = *one->graph().find("y")->producer()->input(1);
    EXPECT_EQ(mask.role, Role::buffer) << mask.name();
  }
}

/// A file can say of each of its nodes that it reads another parameter.
TEST(TorchMerges, ManyReadersThatNameNothingInCommonTakeLittleTime) {
  const auto separating = [](int readers) {
    std::string nodes;
    for (int i = 0; i < readers; ++i) {
      nodes += adding("x", "w", "y" + std::to_string(i), "%p_w" + std::to_string(i));
    }
    nodes += "node { op_type: 'Identity' input: 'x' output: 'y' } ";
    return [readers, model = model_of(nodes, initializer("w"))]() mutable {
      EXPECT_EQ(onnx::separate_merged(model.graph()), static_cast<std::size_t>(readers) - 1);
    };
  };
  EXPECT_LT(growth(1000, separating), kFarFromProportional);
}

TEST(TorchMerges, FilesOfOthersStayAsTheyAre) {
  Model model = model_of(
      "node { op_type: 'Add' input: 'x' input: 'w' output: 'a' } "
      "node { op_type: 'Add' input: 'a' input: 'w' output: 'y' } ",
      initializer("w"));
  EXPECT_EQ(onnx::separate_merged(model.graph()), 0U);
}

}  // namespace
}  // namespace graft::testing

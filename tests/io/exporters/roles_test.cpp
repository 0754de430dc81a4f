#include <gtest/gtest.h>

#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

std::string initializer(const std::string& name) {
  return "initializer { name: '" + name + "' data_type: 1 dims: 2 float_data: [1, 2] } ";
}

std::string node(const std::string& op, const std::string& inputs, const std::string& output) {
  std::string text = "node { op_type: '" + op + "' output: '" + output + "' ";
  for (std::size_t at = 0; at < inputs.size();) {
    const std::size_t end = std::min(inputs.find(' ', at), inputs.size());
    text += "input: '" + inputs.substr(at, end - at) + "' ";
    at = end + 1;
  }
  return text + "} ";
}

/// The role of `name` in a file with this graph.
Role role_in(const std::string& graph, const std::string& name) {
  const std::string type =
      "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ";
  const Model model =
      import(graph_model("input { name: 'x' " + type + "output { name: 'y' " + type + graph));
  return model.graph().find(name)->role;
}

Role role_of_name(const std::string& name) {
  return role_in(initializer(name) + node("Add", "x " + name, "y"), name);
}

TEST(Roles, NamesThatPyTorchMakes) {
  EXPECT_EQ(role_of_name("val_7"), Role::folded);
  EXPECT_EQ(role_of_name("val_7_1"), Role::folded);
  EXPECT_EQ(role_of_name("/n/Constant_1_output_0"), Role::constant);
  EXPECT_EQ(role_of_name("Constant_output_0"), Role::constant);
  EXPECT_EQ(role_of_name("bn.running_mean"), Role::statistic);
  EXPECT_EQ(role_of_name("running_var"), Role::statistic);
  for (const char* name : {"val_", "val_11x", "/Constant_1", "/Constant_1/norm", "n.weight",
                           "temperature", "bn.my_running_mean"}) {
    EXPECT_EQ(role_of_name(name), Role::unknown) << name;
  }
}

TEST(Roles, AConstantNodeWasMadeByTheExporter) {
  const std::string constant =
      "node { op_type: 'Constant' output: 'c' attribute { name: 'value' type: TENSOR "
      "t { data_type: 1 dims: 2 float_data: [1, 2] } } } ";
  EXPECT_EQ(role_in(constant + node("Mul", "x c", "y"), "c"), Role::folded);
}

/// Exporters merge equal parameters, which Identity nodes then hand on.
TEST(Roles, WhatAnIdentityHandsOnGoesByItsName) {
  const std::string graph = initializer("other.weight") +
                            node("Identity", "other.weight", "n.weight") +
                            node("Identity", "other.weight", "val_3") +
                            node("Add", "n.weight val_3", "h") + node("Add", "x h", "y");
  EXPECT_EQ(role_in(graph, "n.weight"), Role::unknown);
  EXPECT_EQ(role_in(graph, "val_3"), Role::folded);
}

TEST(Roles, TheMetadataOfTorchExportIsBelieved) {
  const auto info = [](const std::string& name, const std::string& kind) {
    return initializer(name) + "value_info { name: '" + name +
           "' metadata_props { key: 'pkg.torch.export.graph_signature.InputSpec.kind' value: '" +
           kind + "' } } ";
  };
  const auto role = [&](const std::string& name, const std::string& kind) {
    return role_in(info(name, kind) + node("Add", "x " + name, "y"), name);
  };
  EXPECT_EQ(role("p", "PARAMETER"), Role::parameter);
  EXPECT_EQ(role("val_1", "PARAMETER"), Role::parameter);
  EXPECT_EQ(role("b", "BUFFER"), Role::buffer);
  EXPECT_EQ(role("bn.running_mean", "BUFFER"), Role::buffer);
  EXPECT_EQ(role("other", "CONSTANT_TENSOR"), Role::unknown);
}

const std::string kNorm = initializer("bn.weight") + initializer("bn.bias") +
                          initializer("bn.running_mean") + initializer("bn.running_var");

/// Written out, as torchvision's FrozenBatchNorm2d is.
TEST(Roles, AFrozenNormThatIsWrittenOut) {
  const std::string graph = kNorm + initializer("gain.weight") +
                            node("Sub", "x bn.running_mean", "a") +
                            node("Div", "a bn.running_var", "b") + node("Mul", "b bn.weight", "c") +
                            node("Add", "c bn.bias", "d") + node("Mul", "d gain.weight", "y");
  EXPECT_EQ(role_in(graph, "bn.weight"), Role::buffer);
  EXPECT_EQ(role_in(graph, "bn.bias"), Role::buffer);
  EXPECT_EQ(role_in(graph, "bn.running_var"), Role::statistic);
  EXPECT_EQ(role_in(graph, "gain.weight"), Role::unknown);
}

/// A BatchNormalization of f16 statistics, say.
TEST(Roles, ANormWhoseStatisticsAreCastIsNotFrozen) {
  std::string graph = kNorm;
  for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) {
    graph += node("Identity", name, std::string(name) + "_cast");
  }
  graph += node("BatchNormalization",
                "x bn.weight_cast bn.bias_cast bn.running_mean_cast bn.running_var_cast", "y");
  EXPECT_EQ(role_in(graph, "bn.weight"), Role::unknown);
  EXPECT_EQ(role_in(graph, "bn.running_mean"), Role::statistic);
}

TEST(Roles, ANormWithinAFunctionIsNotFrozen) {
  const std::string type =
      "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ";
  const Model model = import(model_proto(
      "ir_version: 10 opset_import { domain: '' version: 21 } "
      "opset_import { domain: 'f' version: 1 } functions { name: 'Norm' domain: 'f' "
      "input: ['a', 's', 'b', 'm', 'v'] output: 'r' opset_import { domain: '' version: 21 } " +
      node("BatchNormalization", "a s b m v", "r") + "} graph { name: 'g' input { name: 'x' " +
      type + "output { name: 'y' " + type + kNorm +
      "node { op_type: 'Norm' domain: 'f' output: 'y' input: ['x', 'bn.weight', 'bn.bias', "
      "'bn.running_mean', 'bn.running_var'] } }"));
  EXPECT_EQ(model.graph().find("bn.weight")->role, Role::unknown);
}

}  // namespace
}  // namespace graft::testing

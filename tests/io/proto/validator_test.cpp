#include <gtest/gtest.h>

#include "io/onnx.h"
#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

const std::string kIo =
    "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } "
    "output { name: 'y' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ";
const std::string kRelu = "node { name: 'r' op_type: 'Relu' input: 'x' output: 'y' } ";

void expect_refused(const pb::ModelProto& proto, std::string_view part,
                    ErrorKind kind = ErrorKind::model) {
  expect_error(kind, part, [&] { import(proto); });
}
void expect_graph_refused(const std::string& graph_fields, std::string_view part,
                          ErrorKind kind = ErrorKind::model) {
  expect_refused(graph_model(graph_fields), part, kind);
}
/// A model of one initializer.
void expect_tensor_refused(const std::string& fields, std::string_view part,
                           ErrorKind kind = ErrorKind::model) {
  expect_graph_refused(kIo + kRelu + "initializer { name: 'w' " + fields + " }", part, kind);
}
void expect_attribute_refused(const std::string& fields, std::string_view part) {
  expect_graph_refused(
      kIo + "node { name: 'n' op_type: 'Elu' input: 'x' output: 'y' attribute { " + fields + "} }",
      part);
}

TEST(Validator, Header) {
  const std::string graph = "graph { name: 'g' " + kIo + kRelu + "} ";
  const std::string opset = "opset_import { version: 21 } ";
  expect_refused(model_proto("ir_version: 10 " + opset), "holds no graph");
  expect_refused(model_proto(graph + opset), "ir_version is 0");
  expect_refused(model_proto("ir_version: 99 " + graph + opset), "newer than the newest known",
                 ErrorKind::unsupported);
  expect_refused(model_proto("ir_version: 10 " + graph), "imports no opset");
  expect_refused(model_proto("ir_version: 2 " + graph), "(ir_version 2) imports no opset");
  expect_refused(model_proto("ir_version: 10 opset_import { version: 0 } " + graph),
                 "imports version 0");
  expect_refused(model_proto("ir_version: 10 opset_import { version: 5000000000 } " + graph),
                 "imports version 5000000000");
  expect_refused(model_proto("ir_version: 10 opset_import { version: 20 } opset_import { domain: "
                             "'ai.onnx' version: 21 } " +
                             graph),
                 "imports versions 20 and 21");
}

TEST(Validator, Names) {
  expect_graph_refused(kIo + kRelu + "node { op_type: 'Relu' input: 'x' output: 'y' }",
                       "the name 'y' is given twice, here by an output of Relu node producing 'y'");
  expect_graph_refused(kIo + "node { op_type: 'Relu' input: 'x' output: 'x' }",
                       "the name 'x' is given twice");
  expect_graph_refused(kIo + kIo + kRelu, "the name 'x' is given twice, here by an input");
  expect_graph_refused(kIo + kRelu + "input { }", "an input has no name");
  expect_graph_refused(kIo + kRelu +
                           "initializer { name: 'w' data_type: 1 float_data: 1 } "
                           "initializer { name: 'w' data_type: 1 float_data: 1 }",
                       "initializer 'w' is there twice");
  expect_graph_refused(kIo + kRelu + "initializer { data_type: 1 float_data: 1 }",
                       "an initializer has no name");
  expect_graph_refused(kIo + "node { name: 'n' op_type: 'Relu' input: 'ghost' output: 'y' }",
                       "Relu node 'n' reads 'ghost'");
  expect_graph_refused(kIo, "its output 'y' is no input");
  expect_graph_refused(kIo + "node { name: 'n' input: 'x' output: 'y' }", "has no op_type");
}

/// Their kernels trust the shapes that rules give them.
TEST(Validator, InternalOpsAreNotForFiles) {
  expect_graph_refused(
      kIo + "node { name: 'n' op_type: 'ReluGrad' domain: 'ai.graft' input: 'x' output: 'y' }",
      "ReluGrad node 'n' is of the domain 'ai.graft', whose ops exist only inside a training step");
}

TEST(Validator, CyclesAreNamed) {
  expect_graph_refused(kIo +
                           "node { name: 'a' op_type: 'Add' input: 'x' input: 'q' output: 'p' } "
                           "node { name: 'b' op_type: 'Relu' input: 'p' output: 'q' } "
                           "node { name: 'c' op_type: 'Relu' input: 'q' output: 'y' }",
                       "cycle: Add node 'a' <- Relu node 'b' <- Add node 'a'");
  expect_graph_refused(kIo + "node { name: 'a' op_type: 'Add' input: 'x' input: 'y' output: 'y' }",
                       "cycle: Add node 'a' <- Add node 'a'");
  // Through a body that reads its own node's output.
  expect_graph_refused(
      kIo +
          "node { name: 'i' op_type: 'If' input: 'x' output: 'y' attribute { name: 'then_branch' "
          "type: GRAPH g { name: 'b' node { op_type: 'Relu' input: 'y' output: 't' } "
          "output { name: 't' } } } }",
      "cycle: If node 'i' <- If node 'i'");
}

TEST(Validator, ALongChainOutOfOrderIsSortedWithoutRecursion) {
  pb::ModelProto proto = graph_model(kIo);
  constexpr int kLength = 100000;
  for (int i = kLength; i > 0; --i) {
    pb::NodeProto& node = *proto.mutable_graph()->add_node();
    node.set_op_type("Relu");
    node.add_input(i == 1 ? "x" : "v" + std::to_string(i - 1));
    node.add_output(i == kLength ? "y" : "v" + std::to_string(i));
  }
  const Model model = import(proto);
  EXPECT_EQ(model.graph().node_count(), static_cast<std::size_t>(kLength));
  EXPECT_EQ(model.graph().nodes().front()->input(0)->name(), "x");
}

TEST(Validator, Bodies) {
  const auto branch = [](const std::string& body) {
    return kIo +
           "node { name: 'i' op_type: 'If' input: 'x' output: 'y' attribute { name: "
           "'then_branch' type: GRAPH g { name: 'b' " +
           body + "} } }";
  };
  expect_graph_refused(branch("node { op_type: 'Relu' input: 'no' output: 't' }"),
                       "body 'then_branch' of If node 'i': Relu node producing 't' reads 'no'");
  expect_graph_refused(branch("output { name: 'x' }"), "its output 'x' is no input");
  std::string deep = "node { op_type: 'Relu' input: 'x' output: 't' } ";
  for (int i = 0; i < 70; ++i) {
    deep = "node { op_type: 'If' input: 'x' output: 'o" + std::to_string(i) +
           "' attribute { name: 'then_branch' type: GRAPH g { name: 'b' " + deep + "} } } ";
  }
  expect_graph_refused(kIo + deep,
                       "graphs nest deeper; the limit is 64; --allow bodies=NUMBER raises it");
}

TEST(Validator, Tensors) {
  expect_tensor_refused("data_type: 99 float_data: 1", "element type 99");
  expect_tensor_refused("float_data: 1", "element type 0");
  expect_tensor_refused("data_type: 1 dims: -2 float_data: 1", "dimension -2 is negative");
  expect_tensor_refused("data_type: 1 dims: 4294967296 dims: 4294967296", "overflows 64 bits");
  expect_tensor_refused("data_type: 1 dims: 4611686018427387904", "does not fit in memory");
  expect_tensor_refused("data_type: 1 dims: 1000000000 raw_data: 'abcd'",
                        "f32[1000000000] needs 4000000000 bytes, raw_data has 4");
  expect_tensor_refused("data_type: 1 dims: 1 raw_data: 'abcde'", "needs 4 bytes, raw_data has 5");
  expect_tensor_refused(
      "data_type: 1 dims: 3 float_data: 1",
      "f32[3] needs 3 entries in float_data and none elsewhere; float_data has 1");
  expect_tensor_refused("data_type: 1 dims: 1 int32_data: 1", "float_data has 0");
  expect_tensor_refused("data_type: 1 dims: 1 float_data: 1 raw_data: 'abcd'", "twice");
  expect_tensor_refused("data_type: 1 dims: 0 float_data: 1", "float_data has 1");
  expect_tensor_refused("data_type: 8 dims: 1 raw_data: 'abcd'", "strings cannot be raw_data");
  expect_tensor_refused("data_type: 2 dims: 1 int32_data: 256", "256 in its data does not fit");
  expect_tensor_refused("data_type: 1 dims: 1 float_data: 1 segment { begin: 0 end: 1 }",
                        "segments", ErrorKind::unsupported);
}

TEST(Validator, SparseTensors) {
  const auto refused = [](const std::string& fields, std::string_view part, ErrorKind kind) {
    expect_graph_refused(kIo + kRelu + "sparse_initializer { " + fields + " }", part, kind);
  };
  const std::string values = "values { name: 'w' data_type: 1 dims: 1 float_data: 1 } ";
  refused(values + "dims: 2 indices { data_type: 7 dims: 1 int64_data: 2 }",
          "index 2 is outside [0,2)", ErrorKind::model);
  refused(values +
              "dims: 2 dims: 2 indices { data_type: 7 dims: 1 dims: 2 int64_data: 0 "
              "int64_data: -1 }",
          "index -1 is outside", ErrorKind::model);
  refused(values + "dims: 2", "1 values need indices", ErrorKind::model);
  refused(values + "dims: 2 indices { data_type: 6 dims: 1 int32_data: 0 }", "must be i64",
          ErrorKind::model);
  refused(values + "dims: 0 indices { data_type: 7 dims: 1 int64_data: 0 }", "is not positive",
          ErrorKind::model);
  refused(values + "dims: 100000000 indices { data_type: 7 dims: 1 int64_data: 0 }",
          "stores only 4", ErrorKind::unsupported);
  refused(values +
              "dims: 4294967296 dims: 4294967296 indices { data_type: 7 dims: 1 int64_data: "
              "0 }",
          "overflows", ErrorKind::model);
}

TEST(Validator, Attributes) {
  expect_attribute_refused("type: FLOAT f: 1", "an attribute has no name");
  expect_attribute_refused("name: 'alpha' f: 1", "has no type");
  expect_attribute_refused("name: 'alpha' type: FLOAT i: 1",
                           "is of type FLOAT, but holds a value of type INT");
  expect_attribute_refused("name: 'alpha' type: FLOAT f: 1 ints: 2", "holds a value of type INTS");
  expect_attribute_refused("name: 'alpha' type: TENSOR", "is of type TENSOR, but holds no value");
  expect_attribute_refused("name: 'alpha' type: FLOAT ref_attr_name: 'a'",
                           "only a function's body may do");
  expect_attribute_refused("name: 'alpha' type: FLOAT f: 1 } attribute { name: 'alpha' type: FLOAT",
                           "has attribute 'alpha' twice");
  expect_attribute_refused("name: 'alpha' type: TENSOR t { data_type: 1 dims: 9 }", "float_data");
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += "type: INT name: 'a" + std::to_string(i) + "' } attribute {";
  expect_attribute_refused(many + "name: 'z' type: INT", "has 301 attributes");
}

TEST(Validator, ValueTypes) {
  const auto typed = [](const std::string& type) {
    return kIo + kRelu + "value_info { name: 'v' type { " + type + " } }";
  };
  expect_graph_refused(typed("tensor_type { elem_type: 77 }"),
                       "value_info 'v' has element type 77");
  expect_graph_refused(typed("sequence_type { elem_type { tensor_type { elem_type: -1 } } }"),
                       "element type -1");
  expect_graph_refused(typed("tensor_type { shape { dim { dim_value: -2 } } }"),
                       "dimension -2 is negative");
}

TEST(Validator, Functions) {
  const auto with = [](const std::string& functions) {
    return model_proto("ir_version: 10 opset_import { version: 21 } " + functions +
                       " graph { name: 'g' " + kIo + kRelu + "}");
  };
  expect_refused(with("functions { domain: 'f' }"), "has no name");
  expect_refused(with("functions { domain: 'f' name: 'F' } functions { domain: 'f' name: 'F' }"),
                 "function 'f::F' is there twice");
  expect_refused(with("functions { domain: 'f' name: 'F' } functions { domain: 'f' name: 'F' "
                      "overload: 'o' }"),
                 "has two overloads", ErrorKind::unsupported);
  expect_refused(with("functions { domain: 'f' name: 'F' output: 'o' }"), "its output 'o'");
  expect_refused(with("functions { domain: 'f' name: 'F' opset_import { version: 21 } "
                      "node { op_type: 'Relu' input: 'x' output: 'o' } }"),
                 "function 'f::F': Relu node producing 'o' reads 'x'");
  expect_refused(with("functions { domain: 'f' name: 'F' input: 'a' output: 'b' opset_import { "
                      "domain: 'f' version: 1 } node { domain: 'f' op_type: 'F' input: 'a' output: "
                      "'b' } }"),
                 "Cycle detected");
}

TEST(Checker, KeepsTheRefusalsOfSchemas) {
  expect_graph_refused(kIo + "node { name: 'n' op_type: 'Reluu' input: 'x' output: 'y' }",
                       "No Op registered for Reluu");
  expect_graph_refused(kIo + "node { name: 'n' op_type: 'Affine' input: 'x' output: 'y' }",
                       "Affine node 'n': op 'Affine' was experimental");
  expect_graph_refused(kIo + "node { name: 'n' op_type: 'Upsample' input: 'x' output: 'y' }",
                       "deprecated");
  expect_attribute_refused("name: 'beta' type: FLOAT f: 1", "beta");
  expect_graph_refused(kIo + "node { op_type: 'Relu' domain: 'nowhere' input: 'x' output: 'y' }",
                       "No opset import for domain 'nowhere'");
}

TEST(Checker, LetsOtherDomainsAndSmallFaultsPass) {
  const std::string imports =
      "opset_import { version: 11 } opset_import { domain: 'com.microsoft' version: 1 } "
      "opset_import { domain: 'ai.onnx.preview.training' version: 1 } ";
  const Model model = import(model_proto(
      // No graph name, no shapes, and initializers that are no inputs under ir_version 3.
      "ir_version: 3 " + imports + R"(graph { input { name: "x" } output { name: "y" }
        initializer { name: "w" data_type: 1 float_data: 1 }
        node { op_type: "Fused" domain: "com.microsoft" input: "x" input: "w" output: "a" }
        node { op_type: "Gradient" domain: "ai.onnx.preview.training" input: "a" output: "g"
               attribute { name: "xs" type: STRINGS strings: "a" }
               attribute { name: "y" type: STRING s: "a" } }
        node { op_type: "Add" input: "a" input: "g" output: "y" } })"));
  EXPECT_EQ(model.graph().node_count(), 3U);
  EXPECT_EQ(model.graph().name, "");
}

}  // namespace
}  // namespace graft::testing

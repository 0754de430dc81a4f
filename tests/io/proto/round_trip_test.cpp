#include <gtest/gtest.h>

#include <map>

#include "core/base/error.h"
#include "io/file.h"
#include "io/onnx.h"
#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

const std::string kInput =
    "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ";
const std::string kOutput =
    "output { name: 'y' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ";
const std::string kRelu = "node { input: 'x' output: 'y' op_type: 'Relu' } ";

/// Models that Graft refuses, with a part of the reason.
const std::map<std::string, std::string> kRefused{{"super_resolution", "imports no opset"}};

/// Every model in a folder of the root is field-equal after loading and saving, or refused as said.
/// Returns how many were read.
int check_round_trips(const std::filesystem::path& root) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::filesystem::path path = entry.path() / "model.onnx";
    if (!std::filesystem::exists(path)) continue;
    SCOPED_TRACE(path.string());
    const auto refused = kRefused.find(entry.path().filename().string());
    if (refused != kRefused.end()) {
      expect_error(ErrorKind::model, refused->second, [&] { onnx::load(path); });
      continue;
    }
    pb::ModelProto proto;
    EXPECT_TRUE(proto.ParseFromString(read_file(path, 1U << 30)));
    EXPECT_EQ(differences(proto, exported(onnx::load(path))), "");
    ++count;
  }
  return count;
}

TEST(RoundTrip, EveryTrainingCaseIsFieldEqual) {
  EXPECT_EQ(check_round_trips(training_cases()), 18);
}

TEST(RoundTrip, EverySharedModelIsFieldEqual) {
  const std::filesystem::path root = shared_folder() / "models";
  if (!std::filesystem::exists(root)) GTEST_SKIP() << root << " is not there";
  EXPECT_GE(check_round_trips(root), 14);
}

TEST(RoundTrip, ModelFields) {
  expect_round_trip(model_proto(R"(
      ir_version: 10 producer_name: "p" producer_version: "1.2" domain: "org.x" model_version: 7
      doc_string: "doc"
      opset_import { domain: "" version: 21 } opset_import { domain: "ai.onnx.ml" version: 3 }
      opset_import { domain: "" version: 21 } opset_import { domain: "custom" version: 1 }
      metadata_props { key: "a" value: "1" } metadata_props { key: "b" }
      metadata_props { key: "a" value: "2" } metadata_props { value: "nameless" }
      configuration { name: "pair" num_devices: 2 device: "d0" device: "d1" }
      training_info {
        initialization { name: "init" } algorithm { name: "algo" node { op_type: "Gradient"
          domain: "ai.onnx.preview.training" output: "dx" } }
        initialization_binding { key: "w" value: "v" } update_binding { key: "w" value: "u" } }
      graph { name: "g" )" + kInput +
                                kOutput + kRelu + "}"));
}

TEST(RoundTrip, EmptyFieldsThatAreThereStayThere) {
  expect_round_trip(model_proto(R"(
      ir_version: 8 producer_name: "" model_version: 0 doc_string: "" domain: ""
      opset_import { domain: "ai.onnx" version: 17 }
      graph { name: "" doc_string: "" )" +
                                kInput + kOutput + R"(
        node { name: "" domain: "" doc_string: "" input: "x" output: "y" op_type: "LeakyRelu"
               attribute { name: "alpha" type: FLOAT f: 0 doc_string: "" } } })"));
}

TEST(RoundTrip, BothSpellingsOfTheStandardDomain) {
  const pb::ModelProto proto = graph_model(kInput + kOutput + R"(
      node { input: "x" output: "a" op_type: "Relu" domain: "ai.onnx" }
      node { input: "a" output: "b" op_type: "Relu" domain: "" }
      node { input: "b" output: "y" op_type: "Relu" })");
  expect_round_trip(proto);
  EXPECT_TRUE(import(proto).graph().nodes().front()->is("Relu"));
}

TEST(RoundTrip, NodeFields) {
  expect_round_trip(model_proto(R"(
      ir_version: 11 opset_import { version: 21 } opset_import { domain: "custom" version: 1 }
      graph { name: "g" )" + kInput +
                                kOutput + R"(
        node { name: "n" doc_string: "d" overload: "f32" domain: "custom" op_type: "Op"
               input: "x" input: "" input: "x" input: "" output: "" output: "y" output: ""
               metadata_props { key: "k" value: "v" }
               device_configurations { configuration_id: "pair" pipeline_stage: 1
                 sharding_spec { tensor_name: "x" device: 0 } } } })"));
}

TEST(RoundTrip, EveryAttributeType) {
  expect_round_trip(model_proto(R"(
      ir_version: 10 opset_import { version: 21 } opset_import { domain: "custom" version: 1 }
      graph { name: "g" )" + kInput +
                                kOutput + R"(
        node { domain: "custom" op_type: "Op" input: "x" output: "y"
          attribute { name: "f" type: FLOAT f: 1.5 doc_string: "doc" }
          attribute { name: "f0" type: FLOAT }
          attribute { name: "minus_zero" type: FLOAT f: -0.0 }
          attribute { name: "i" type: INT i: -3 }
          attribute { name: "i0" type: INT i: 0 }
          attribute { name: "i_none" type: INT }
          attribute { name: "s" type: STRING s: "text" }
          attribute { name: "s0" type: STRING s: "" }
          attribute { name: "s_none" type: STRING }
          attribute { name: "t" type: TENSOR t { dims: 2 data_type: 1 float_data: 1 float_data: 2
            name: "inner" doc_string: "d" metadata_props { key: "k" value: "v" } } }
          attribute { name: "fs" type: FLOATS floats: 1 floats: 2 }
          attribute { name: "fs0" type: FLOATS }
          attribute { name: "is" type: INTS ints: 1 ints: -2 }
          attribute { name: "ss" type: STRINGS strings: "a" strings: "" }
          attribute { name: "ts" type: TENSORS tensors { data_type: 7 int64_data: 5 }
            tensors { data_type: 7 dims: 1 raw_data: "\001\000\000\000\000\000\000\000" name: "" } }
          attribute { name: "st" type: SPARSE_TENSOR sparse_tensor { dims: 4
            values { data_type: 1 dims: 1 float_data: 9 } indices { data_type: 7 dims: 1
            int64_data: 3 } } }
          attribute { name: "tp" type: TYPE_PROTO tp { sequence_type { elem_type { tensor_type {
            elem_type: 1 } } } } }
          attribute { name: "tps" type: TYPE_PROTOS type_protos { optional_type { elem_type {
            tensor_type { elem_type: 7 } } } denotation: "D" } }
          attribute { name: "g" type: GRAPH g { name: "inner" doc_string: "d"
            node { op_type: "Relu" input: "x" output: "z" } output { name: "z" } } }
          attribute { name: "gs" type: GRAPHS graphs { name: "one" } graphs { name: "two" } } } })"));
}

TEST(RoundTrip, ValueInfosKeepOrderDuplicatesAndStrangers) {
  const auto info = [](const std::string& name, const std::string& rest) {
    return "value_info { name: '" + name + "' " + rest + "} ";
  };
  const std::string type = "type { tensor_type { elem_type: 1 shape { dim { dim_param: 'N' } } } }";
  expect_round_trip(graph_model(
      kInput + kOutput + "node { input: 'x' output: 'a' op_type: 'Relu' } " +
      "node { input: 'a' output: 'b' op_type: 'Relu' } node { input: 'b' output: 'y' op_type: "
      "'Relu' } " +
      info("stranger", type + "doc_string: 'who'") + info("b", type) + info("bare_stranger", "") +
      info("a", type + "doc_string: 'd' metadata_props { key: 'k' value: 'v' }") + info("y", "") +
      info("x", type) + info("b", "doc_string: 'again'") +
      "quantization_annotation { tensor_name: 'a' quant_parameter_tensor_names { key: 'SCALE' "
      "value: 's' } } metadata_props { key: 'k' value: 'v' } doc_string: 'graph'"));
}

TEST(RoundTrip, DimsThatStandForUnknown) {
  const pb::ModelProto proto = graph_model(R"(
      input { name: "x" doc_string: "in" type { denotation: "T" tensor_type { elem_type: 1 shape {
        dim { dim_value: -1 } dim { dim_param: "?" } dim { dim_param: "" } dim { }
        dim { dim_value: 3 denotation: "C" } dim { dim_param: "-1" } dim { dim_param: "N" } } } } }
      output { name: "y" type { tensor_type { elem_type: 1 } } } )" +
                                           kRelu);
  expect_round_trip(proto);
  const Model model = import(proto);
  const SymShape& shape = *model.graph().inputs()[0]->shape();
  EXPECT_EQ(shape, SymShape({Dim(), Dim(), Dim(), Dim(), Dim(3), Dim(), Dim("N")}));
  EXPECT_FALSE(model.graph().outputs()[0]->shape().has_value());
}

TEST(RoundTrip, ContainersAndUntypedOutputs) {
  expect_round_trip(graph_model(R"(
      input { name: "s" type { sequence_type { elem_type { tensor_type { elem_type: 1 } } } } }
      input { name: "m" type { map_type { key_type: 7 value_type { tensor_type { elem_type: 1 } } } } }
      input { name: "o" type { optional_type { elem_type { tensor_type { elem_type: 1 } } } } }
      input { name: "p" type { sparse_tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      output { name: "n" } output { name: "s" } output { name: "n" doc_string: "twice" }
      node { op_type: "SequenceLength" input: "s" output: "n" })"));
}

TEST(RoundTrip, InitializersAsInputsRawAndTyped) {
  const pb::ModelProto proto = graph_model(kInput + kOutput + R"(
      input { name: "w" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      initializer { name: "b" data_type: 1 dims: 2 float_data: 1 float_data: 2 doc_string: "bias"
                    metadata_props { key: "k" value: "v" } }
      initializer { name: "w" data_type: 1 dims: 2 raw_data: "\000\000\200?\000\000\000@" }
      initializer { name: "none" data_type: 1 dims: 0 raw_data: "" data_location: DEFAULT }
      initializer { name: "none_typed" data_type: 1 dims: 0 }
      node { op_type: "Add" input: "x" input: "w" output: "s" }
      node { op_type: "Add" input: "s" input: "b" output: "y" })");
  expect_round_trip(proto);
  const Model model = import(proto);
  EXPECT_EQ(model.graph().inputs().size(), 2U);
  EXPECT_EQ(model.graph().initializers().size(), 4U);
  EXPECT_EQ(model.graph().find("w")->initializer().values<float>()[1], 2.0F);
  EXPECT_TRUE(model.graph().find("w")->is_graph_input());
}

TEST(RoundTrip, SparseInitializersAreDenseInMemory) {
  const pb::ModelProto proto = graph_model(kInput + kOutput + R"(
      sparse_initializer { dims: 2 dims: 2 values { name: "w" data_type: 1 dims: 2 float_data: 5
        float_data: 7 } indices { data_type: 7 dims: 2 dims: 2 int64_data: 0 int64_data: 1
        int64_data: 1 int64_data: 0 } }
      sparse_initializer { dims: 3 values { name: "v" data_type: 7 dims: 1 int64_data: 4 }
        indices { data_type: 7 dims: 1 int64_data: 2 } }
      node { op_type: "MatMul" input: "x" input: "w" output: "y" })");
  expect_round_trip(proto);
  Model model = import(proto);
  Value* const w = model.graph().find("w");
  EXPECT_TRUE(equal_bits(w->initializer(), Tensor::from<float>({2, 2}, {0, 5, 7, 0})));
  EXPECT_TRUE(equal_bits(model.graph().find("v")->initializer(),
                         Tensor::from<std::int64_t>({3}, {0, 0, 4})));
  w->set_initializer(Tensor::from<float>({2, 2}, {1, 5, 7, 1}));
  const pb::ModelProto changed = exported(model);
  EXPECT_EQ(changed.graph().sparse_initializer_size(), 1);
  ASSERT_EQ(changed.graph().initializer_size(), 1);
  EXPECT_EQ(changed.graph().initializer(0).name(), "w");
  EXPECT_EQ(changed.graph().initializer(0).dims_size(), 2);
}

TEST(RoundTrip, BodiesReadOuterValues) {
  const pb::ModelProto proto = graph_model(R"(
      input { name: "c" type { tensor_type { elem_type: 9 shape { } } } } )" +
                                           kInput + kOutput + R"(
      node { op_type: "Relu" input: "x" output: "r" }
      node { op_type: "If" input: "c" output: "y"
        attribute { name: "then_branch" type: GRAPH g { name: "then"
          initializer { name: "two" data_type: 1 float_data: 2 }
          node { op_type: "If" input: "c" output: "t" attribute { name: "then_branch" type: GRAPH g {
              name: "deep" node { op_type: "Mul" input: "r" input: "two" output: "d" }
              output { name: "d" } } }
            attribute { name: "else_branch" type: GRAPH g { name: "deep2"
              node { op_type: "Identity" input: "x" output: "d" } output { name: "d" } } } }
          output { name: "t" type { tensor_type { elem_type: 1 } } } } }
        attribute { name: "else_branch" type: GRAPH g { name: "else"
          node { op_type: "Identity" input: "r" output: "e" }
          value_info { name: "e" doc_string: "inner" } output { name: "e" } } } })");
  expect_round_trip(proto);
  const Model model = import(proto);
  const Node& branch = *model.graph().nodes().back();
  const auto& body = std::get<std::shared_ptr<Graph>>(branch.attributes.find("else_branch")->value);
  EXPECT_EQ(body->nodes().front()->input(0), model.graph().find("r"));
  EXPECT_EQ(body->parent(), &model.graph());
  EXPECT_EQ(model.graph().find("r")->uses().size(), 2U);
}

TEST(RoundTrip, Functions) {
  const pb::ModelProto proto = model_proto(R"(
      ir_version: 10 opset_import { version: 21 } opset_import { domain: "f" version: 1 }
      functions { name: "Scaled" domain: "f" overload: "o" doc_string: "d" input: "a" input: "b"
        output: "c" attribute: "alpha" attribute: "beta"
        attribute_proto { name: "gamma" type: FLOAT f: 2 doc_string: "default" }
        opset_import { domain: "ai.onnx" version: 21 } opset_import { domain: "custom" version: 2 }
        metadata_props { key: "k" value: "v" }
        value_info { name: "c" doc_string: "out" } value_info { name: "nobody" }
        node { op_type: "LeakyRelu" input: "a" output: "l"
               attribute { name: "alpha" type: FLOAT ref_attr_name: "alpha" } }
        node { op_type: "Add" input: "l" input: "b" output: "c" } }
      functions { name: "Nothing" domain: "" }
      graph { name: "g" )" + kInput + kOutput +
                                           R"(
        node { op_type: "Scaled" domain: "f" overload: "o" input: "x" input: "x" output: "y" } })");
  expect_round_trip(proto);
  const Model model = import(proto);
  const Function& function = model.functions.at(0);
  EXPECT_EQ(function.body->inputs().size(), 2U);
  EXPECT_EQ(function.body->nodes().front()->attributes.find("alpha")->reference, "alpha");
  EXPECT_EQ(function.attribute_defaults.at(0).name, "gamma");
}

TEST(RoundTrip, UnknownFieldsAtEveryLevel) {
  pb::ModelProto proto = graph_model(kInput + kOutput + kRelu +
                                     "initializer { name: 'w' data_type: 1 float_data: 1 } ");
  const auto add_unknown = [](auto* message, int value) {
    message->GetReflection()->MutableUnknownFields(message)->AddVarint(
        900, static_cast<std::uint64_t>(value));
  };
  add_unknown(&proto, 1);
  add_unknown(proto.mutable_graph(), 2);
  add_unknown(proto.mutable_graph()->mutable_node(0), 3);
  add_unknown(proto.mutable_graph()->mutable_initializer(0), 4);
  add_unknown(proto.mutable_graph()->mutable_input(0), 5);
  add_unknown(proto.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type(), 6);
  add_unknown(proto.mutable_opset_import(0), 7);
  expect_round_trip(proto);
}

TEST(RoundTrip, NodesOutOfOrderAreSortedStably) {
  const Model model = import(graph_model(kInput + kOutput + R"(
      node { name: "5" op_type: "Add" input: "b" input: "c" output: "y" }
      node { name: "1" op_type: "Relu" input: "x" output: "a" }
      node { name: "3" op_type: "Relu" input: "a" output: "c" }
      node { name: "2" op_type: "Relu" input: "a" output: "b" })"));
  std::string order;
  for (const auto& node : model.graph().nodes()) order += node->name();
  EXPECT_EQ(order, "1325");
}

TEST(RoundTrip, ABodyMayNeedALaterNode) {
  const Model model = import(graph_model(R"(
      input { name: "c" type { tensor_type { elem_type: 9 shape { } } } } )" +
                                         kInput + kOutput + R"(
      node { op_type: "If" input: "c" output: "y"
        attribute { name: "then_branch" type: GRAPH g { name: "t" output { name: "t" }
          node { op_type: "Relu" input: "late" output: "t" } } }
        attribute { name: "else_branch" type: GRAPH g { name: "e" output { name: "e" }
          node { op_type: "Relu" input: "x" output: "e" } } } }
      node { op_type: "Relu" input: "x" output: "late" })"));
  EXPECT_EQ(model.graph().nodes().back()->op_type(), "If");
}

TEST(RoundTrip, ChangesAreWrittenAndNothingElse) {
  pb::ModelProto proto = graph_model(kInput + kOutput + R"(
      initializer { name: "w" data_type: 1 dims: 2 float_data: 1 float_data: 2 }
      initializer { name: "r" data_type: 1 dims: 2 raw_data: "\000\000\200?\000\000\000@" }
      node { name: "n" op_type: "Add" input: "x" input: "w" output: "a" }
      node { op_type: "Add" input: "a" input: "r" output: "y" }
      value_info { name: "a" doc_string: "kept" })");
  Model model = import(proto);
  model.graph().find("w")->initializer().values<float>()[0] = 8;
  model.graph().find("r")->set_initializer(Tensor::from<float>({2}, {1, 0}));
  model.graph().rename(model.graph().find("a"), "sum");
  model.graph().nodes().front()->set_name("");
  proto.mutable_graph()->mutable_initializer(0)->set_float_data(0, 8);
  proto.mutable_graph()->mutable_initializer(1)->set_raw_data(std::string("\0\0\x80?\0\0\0\0", 8));
  proto.mutable_graph()->mutable_node(0)->set_output(0, "sum");
  proto.mutable_graph()->mutable_node(0)->set_name("");
  proto.mutable_graph()->mutable_node(1)->set_input(0, "sum");
  proto.mutable_graph()->mutable_value_info(0)->set_name("sum");
  EXPECT_EQ(differences(proto, exported(model)), "");
}

TEST(RoundTrip, AChangedTypeIsWritten) {
  Model model = import(graph_model(
      R"(input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2
         denotation: "D" } } } } } )" +
      kOutput + kRelu));
  model.graph().inputs()[0]->set_type({DType::f32, SymShape{Dim("batch")}});
  const pb::ModelProto proto = exported(model);
  const auto& type = proto.graph().input(0).type().tensor_type();
  EXPECT_EQ(type.shape().dim(0).dim_param(), "batch");
  EXPECT_EQ(type.shape().dim(0).denotation(), "D");
}

/// Files list initializers in value_info too; what the tensor says counts.
TEST(RoundTrip, ValueInfoFollowsAnInitializer) {
  Model model = import(graph_model(kInput + kOutput + R"(
      node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }
      initializer { name: 'w' data_type: 1 dims: 2 float_data: 1 float_data: 2 }
      value_info { name: 'w' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      )"));
  Graph& graph = model.graph();
  Value* const w = graph.find("w");
  graph.rename(w, "wide");
  Value* const half = graph.add_initializer("w", w->initializer().cast(DType::f16));
  graph.preserve(half) = graph.preserved_of(w);
  graph.replace_all_uses(w, half);
  graph.remove_initializer(w);
  const pb::ModelProto proto = exported(model);
  ASSERT_EQ(proto.graph().value_info_size(), 1);
  EXPECT_EQ(proto.graph().value_info(0).type().tensor_type().elem_type(), pb::TensorProto::FLOAT16);
  EXPECT_EQ(proto.graph().value_info(0).type().tensor_type().shape().dim(0).dim_value(), 2);
}

TEST(RoundTrip, RemovedValuesLeaveNoValueInfo) {
  Model model = import(graph_model(kInput + kOutput + kRelu +
                                   "node { op_type: 'Relu' input: 'x' output: 'unused' } "
                                   "value_info { name: 'unused' }"));
  model.graph().remove(model.graph().find("unused")->producer());
  EXPECT_EQ(exported(model).graph().value_info_size(), 0);
}

TEST(RoundTrip, AnOutputThatBecomesInnerLosesDimsBelowZero) {
  Model model = import(graph_model(
      kInput +
      "output { name: 'y' type { tensor_type { elem_type: 1 shape { dim { dim_value: -1 } "
      "dim { dim_value: 3 } } } } }" +
      kRelu));
  Graph& graph = model.graph();
  Value* const y = graph.find("y");
  y->graph().preserve(y).in_value_info = true;
  graph.set_outputs({graph.add_node("Relu", "", {y}, {"z"})->output()});
  const pb::ModelProto proto = exported(model);
  ASSERT_EQ(proto.graph().value_info_size(), 1);
  const auto& shape = proto.graph().value_info(0).type().tensor_type().shape();
  EXPECT_FALSE(shape.dim(0).has_dim_value());
  EXPECT_EQ(shape.dim(1).dim_value(), 3);
}

TEST(RoundTrip, AnInnerValueThatBecomesOutputTakesItsInfoAlong) {
  Model model = import(graph_model(
      kInput + kOutput + "node { op_type: 'Relu' input: 'x' output: 'a' } " +
      "node { op_type: 'Relu' input: 'a' output: 'y' } " +
      "value_info { name: 'a' doc_string: 'd' type { tensor_type { elem_type: 1 } } }"));
  model.graph().set_outputs({model.graph().find("a")});
  const pb::ModelProto proto = exported(model);
  EXPECT_EQ(proto.graph().value_info_size(), 0);
  EXPECT_EQ(proto.graph().output(0).name(), "a");
  EXPECT_EQ(proto.graph().output(0).doc_string(), "d");
}

}  // namespace
}  // namespace graft::testing

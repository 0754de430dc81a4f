#include "io/onnx.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "io/file.h"
#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

/// y = relu(x w + b), made in memory.
Model small_model(std::int64_t opset) {
  Model model;
  model.set_opset("", opset);
  Graph& graph = model.graph();
  Value* const x = graph.add_input("x", {DType::f32, SymShape{Dim("batch"), Dim(3)}});
  Value* const w = graph.add_initializer("w", Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  Value* const b = graph.add_initializer("b", Tensor::from<float>({2}, {1, 2}));
  Node* const gemm = graph.add_node("Gemm", "", {x, w, b}, {"h"}, {{"alpha", 1.0F}, {"transA", 0}});
  Node* const relu = graph.add_node("Relu", "", {gemm->output()}, {"y"});
  relu->output()->set_type({DType::f32, SymShape{Dim("batch"), Dim(2)}});
  graph.add_output(relu->output());
  return model;
}

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(Onnx, ModelsMadeInMemoryAreValid) {
  const std::pair<std::int64_t, std::int64_t> ir_versions[] = {
      {8, 4}, {9, 4}, {11, 6}, {13, 7}, {17, 8}, {20, 9}, {21, 10}, {23, 11}, {24, 12}, {25, 13}};
  for (const auto& [opset, ir_version] : ir_versions) {
    const pb::ModelProto proto = exported(small_model(opset));
    EXPECT_EQ(full_check(proto), "") << opset;
    EXPECT_EQ(proto.ir_version(), ir_version) << opset;
    EXPECT_EQ(proto.producer_name(), "graft");
  }
}

TEST(Onnx, EveryKindOfAttributeAndBodiesMadeInMemoryAreValid) {
  Model model;
  model.set_opset("", 21);
  Graph& graph = model.graph();
  const ValueType pair{DType::f32, SymShape{Dim(2)}};
  Value* const x = graph.add_input("x", pair);
  Value* const c = graph.add_input("c", {DType::boolean, SymShape{}});
  Node* const constant =
      graph.add_node("Constant", "", {}, {"k"}, {{"value", Tensor::from<float>({2}, {3, 4})}});
  const auto body = [&](const char* name, Value* read) {
    auto made = std::make_shared<Graph>(name, &graph);
    Node* const node = made->add_node("Identity", "", {read}, {std::string(name) + "_out"});
    made->add_output(node->output());
    return made;
  };
  Node* const branch = graph.add_node(
      "If", "", {c}, {"picked"},
      {{"then_branch", body("then", x)}, {"else_branch", body("else", constant->output())}});
  Node* const text_op =
      graph.add_node("Gelu", "", {branch->output()}, {"y"}, {{"approximate", "tanh"}});
  text_op->output()->set_type(pair);
  graph.add_output(text_op->output());
  const pb::ModelProto proto = exported(model);
  EXPECT_EQ(full_check(proto), "");
  EXPECT_EQ(differences(proto, exported(import(proto))), "");
}

TEST(Onnx, AnUnknownOutputTypeIsLeftOut) {
  Model model = small_model(21);
  model.graph().outputs()[0]->set_type({});
  EXPECT_FALSE(exported(model).graph().output(0).has_type());
}

TEST(Onnx, ALayerAppendedToAnOldFileRaisesItsVersion) {
  Model model = import(model_proto(R"(ir_version: 3 opset_import { version: 8 } graph { name: "g"
      input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      node { op_type: "Relu" input: "x" output: "y" } })"));
  EXPECT_EQ(exported(model).ir_version(), 3);
  Graph& graph = model.graph();
  Value* const bias = graph.add_initializer("bias", Tensor::from<float>({2}, {1, 2}));
  Node* const add = graph.add_node("Add", "", {graph.find("y"), bias}, {"z"});
  add->output()->set_type({DType::f32, SymShape{Dim(2)}});
  graph.set_outputs({add->output()});
  EXPECT_EQ(exported(model).ir_version(), 4);
  EXPECT_EQ(full_check(exported(model)), "");
}

TEST(Onnx, RefusesToWriteWhatNoRuntimeReads) {
  Model internal = small_model(21);
  Graph& graph = internal.graph();
  graph.add_node("SgdUpdate", kInternalDomain, {graph.find("w")}, {"w2"})->set_name("update");
  expect_error(ErrorKind::model, "SgdUpdate node 'update' is of the internal domain",
               [&] { onnx::serialize(internal); });
  Model foreign = small_model(21);
  foreign.graph().add_node("Op", "other", {foreign.graph().find("w")}, {"w2"});
  expect_error(ErrorKind::model, "domain 'other', which the model does not import",
               [&] { onnx::serialize(foreign); });
  expect_error(ErrorKind::model, "imports no opset", [] { onnx::serialize(Model()); });
}

TEST(Onnx, SaveAndLoad) {
  const TempFolder folder;
  const auto path = folder.path() / "m.onnx";
  Model model = small_model(21);
  onnx::save(model, path);
  EXPECT_EQ(read_file(path, 10000), onnx::serialize(model));
  EXPECT_EQ(differences(exported(model), exported(onnx::load(path))), "");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(Onnx, ErrorsNameTheFile) {
  const TempFolder folder;
  expect_error(ErrorKind::io, "none.onnx': cannot open",
               [&] { onnx::load(folder.path() / "none.onnx"); });
  expect_error(ErrorKind::model, "bad.onnx': the model is malformed at byte 2",
               [&] { onnx::load(folder.write("bad.onnx", "hello")); });
  expect_error(ErrorKind::io, "No such file or directory",
               [&] { onnx::save(small_model(21), folder.path() / "none" / "m.onnx"); });
}

TEST(Onnx, AFailedSaveLeavesTheOldFile) {
  const TempFolder folder;
  const auto path = folder.write("m.onnx", "old");
  Model internal = small_model(21);
  internal.graph().add_node("X", kInternalDomain, {}, {"x2"});
  expect_error(ErrorKind::model, "internal", [&] { onnx::save(internal, path); });
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(entries_in(folder.path()), 1U);

  // A disk that takes no more than 100 bytes.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{100, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  expect_error(ErrorKind::io, "File too large", [&] { onnx::save(small_model(21), path); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_file(path, 100), "old");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(Onnx, TensorFiles) {
  const TempFolder folder;
  const auto path = folder.path() / "input_0.pb";
  onnx::save_tensor(path, Tensor::from<float>({2}, {1, 2}), "x");
  const NamedTensor tensor = onnx::load_tensor(path);
  EXPECT_EQ(tensor.name, "x");
  EXPECT_TRUE(equal_bits(tensor.tensor, Tensor::from<float>({2}, {1, 2})));
  onnx::save_tensor(path, Tensor::from_strings({1}, {"s"}));
  EXPECT_EQ(onnx::load_tensor(path).tensor.strings().at(0), "s");
  expect_error(ErrorKind::argument, "no tensor", [&] { onnx::save_tensor(path, {}); });
  expect_error(ErrorKind::model, "the tensor is empty",
               [&] { onnx::load_tensor(folder.write("bad.pb", "")); });
  expect_error(ErrorKind::model, "tensor 't': f32[9] needs 36 bytes, raw_data has 4", [&] {
    onnx::load_tensor(folder.write(
        "lie.pb",
        tensor_proto("name: 't' data_type: 1 dims: 9 raw_data: 'abcd'").SerializeAsString()));
  });
}

TEST(Onnx, TensorFilesOfTrainingCasesAreRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(training_cases())) {
    if (entry.path().extension() != ".pb") continue;
    EXPECT_TRUE(onnx::load_tensor(entry.path()).tensor.defined()) << entry.path();
    ++count;
  }
  EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace graft::testing

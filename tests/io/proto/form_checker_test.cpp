#include "io/proto/form_checker.h"

#include <gtest/gtest.h>

#include "io/op_forms.h"
#include "io/proto/checker.h"
#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

const std::string kConv =
    "node { input: 'x' input: 'w' output: 'y' op_type: 'Conv' "
    "attribute { name: 'group' type: INT i: 1 } } ";

std::vector<std::string> forms_of(const std::vector<std::string>& ops) {
  std::vector<std::string> lines;
  for (const std::string& op : ops) {
    for (const std::string& form : onnx::op_forms(op)) lines.push_back(form);
  }
  return lines;
}

void check(const pb::ModelProto& model) {
  const std::vector<std::string> lines =
      forms_of({"Conv", "MaxPool", "Concat", "If", "Unsqueeze", "Clip"});
  onnx::check_forms(model, std::vector<std::string_view>(lines.begin(), lines.end()), "not here");
}

TEST(OpForms, SayWhatEachVersionTakes) {
  const std::vector<std::string> gemm = onnx::op_forms("Gemm");
  EXPECT_EQ(gemm.front(),
            "Gemm 1 takes 3 111 gives 1 1 attributes alpha:1 beta:1 broadcast:2 transA:2 transB:2");
  EXPECT_EQ(gemm.back(),
            "Gemm 13 takes 2 11? gives 1 1 attributes alpha:1 beta:1 transA:2 transB:2");
  EXPECT_EQ(onnx::op_forms("Concat").back(), "Concat 13 takes 1 * gives 1 1 attributes axis:2!");
  EXPECT_TRUE(onnx::op_forms("NoSuchOp").empty());
}

/// Whether both refuse the graph, or neither.
void expect_as_onnx(const std::string& graph, bool is_refused) {
  SCOPED_TRACE(graph);
  std::string inputs;
  for (const char name : {'x', 'w', 'z', 'm', 'a', 'b', 'c'}) {
    inputs += std::string("input { name: '") + name + "' } ";
  }
  pb::ModelProto model = graph_model(inputs + graph);
  if (is_refused) {
    EXPECT_THROW(onnx::run_checker(model, {}), Error);
    EXPECT_THROW(check(model), Error);
  } else {
    EXPECT_NO_THROW(onnx::run_checker(model, {}));
    EXPECT_NO_THROW(check(model));
  }
}

TEST(FormChecker, RefusesWhatOnnxDoes) {
  expect_as_onnx(kConv, false);
  const std::string pool = "node { input: 'x' output: 'y' op_type: 'MaxPool' ";
  const std::string size = "attribute { name: 'kernel_shape' type: INTS ints: 2 ints: 2 } ";
  expect_as_onnx(pool + size + "}", false);
  expect_as_onnx(pool + "}", true);  // its attribute is required
  expect_as_onnx(pool + size + "attribute { name: 'size' type: INT i: 1 } }", true);
  expect_as_onnx(pool + "attribute { name: 'kernel_shape' type: INT i: 2 } }", true);
  expect_as_onnx(pool + "input: 'z' " + size + "}", true);
  expect_as_onnx(pool + "output: 'i' output: 'j' " + size + "}", true);
  expect_as_onnx("node { input: 'x' output: 'y' op_type: 'Conv' }", true);
  expect_as_onnx("node { input: 'x' input: '' output: 'y' op_type: 'Conv' }", true);
  expect_as_onnx("node { input: 'x' input: '' input: 'm' output: 'y' op_type: 'Clip' }", false);
  const std::string axis = "attribute { name: 'axis' type: INT i: 0 } ";
  expect_as_onnx(
      "node { input: 'a' input: 'b' input: 'c' output: 'y' op_type: 'Concat' " + axis + "}", false);
  expect_as_onnx("node { output: 'y' op_type: 'Concat' " + axis + "}", true);
}

TEST(FormChecker, TakesTheFormOfTheOpset) {
  const std::string axes = "attribute { name: 'axes' type: INTS ints: 0 } ";
  pb::ModelProto model =
      graph_model("node { input: 'x' output: 'y' op_type: 'Unsqueeze' " + axes + "} ");
  EXPECT_THROW(check(model), Error);  // an input since 13
  model.mutable_opset_import(0)->set_version(11);
  EXPECT_NO_THROW(check(model));
}

TEST(FormChecker, LooksIntoBodiesAndNamesTheNode) {
  const std::string branch =
      " type: GRAPH g { node { name: 'inner' output: 'y' op_type: 'Conv' } } ";
  expect_error(ErrorKind::model, "Conv node 'inner' has 0 inputs, wanted 2 to 3", [&] {
    check(
        graph_model("node { input: 'c' output: 'y' op_type: 'If' attribute { name: 'then_branch'" +
                    branch + "} attribute { name: 'else_branch'" + branch + "} }"));
  });
}

TEST(FormChecker, RefusesOpsThatNoLineNames) {
  expect_error(ErrorKind::unsupported, "op Sin is not here",
               [] { check(graph_model("node { input: 'x' output: 'y' op_type: 'Sin' }")); });
}

}  // namespace
}  // namespace graft::testing

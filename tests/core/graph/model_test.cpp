#include "core/graph/model.h"

#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "tests/core/error_of.h"
#include "tests/core/graph/small_graphs.h"

namespace graft {
namespace {

TEST(Model, StandardDomainHasTwoNames) {
  Model model;
  EXPECT_EQ(model.opset(), 0);
  model.set_opset("ai.onnx", 17);
  EXPECT_EQ(model.opset(), 17);
  EXPECT_EQ(model.opset("ai.onnx"), 17);
  model.set_opset("", 18);
  model.set_opset("local", 1);
  EXPECT_EQ(model.opset("ai.onnx"), 18);
  ASSERT_EQ(model.opset_imports.size(), 2U);
  EXPECT_EQ(model.opset_imports[0].domain, "ai.onnx");  // as the file has it
}

TEST(Model, CloneCopiesEveryField) {
  Model model;
  model.ir_version = 8;
  model.set_opset("", 17);
  model.producer_name = "p";
  model.producer_version = "v";
  model.domain = "d";
  model.model_version = 3;
  model.doc = "doc";
  model.metadata = {{"key", "value"}};
  model.preserved = "bytes";
  model.functions.push_back(
      {"local", "F", {"alpha"}, {{"beta", 1}}, {{"", 17}}, chain(), "function bytes"});
  model.set_graph(branching());
  ValueMap map;
  const Model copy = model.clone(&map);
  EXPECT_EQ(print(copy), print(model));
  EXPECT_EQ(copy.ir_version + copy.model_version, 11);
  EXPECT_EQ(copy.producer_name + copy.producer_version + copy.domain + copy.doc, "pvddoc");
  EXPECT_EQ(copy.metadata, model.metadata);
  EXPECT_EQ(copy.preserved + copy.functions[0].preserved, "bytesfunction bytes");
  EXPECT_NE(copy.functions[0].body.get(), model.functions[0].body.get());
  EXPECT_EQ(map.at(model.graph().find("x")), copy.graph().find("x"));
}

TEST(Model, CloneRefusesAFunctionWithoutABody) {
  Model model;
  model.functions.push_back({.domain = "local", .name = "F"});
  EXPECT_EQ(kind_of([&] { model.clone(); }), ErrorKind::argument);
}

}  // namespace
}  // namespace graft

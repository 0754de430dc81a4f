#include "core/graph/print.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "tests/core/graph/small_graphs.h"

namespace graft {
namespace {

TEST(Print, OneLineAValueAndANode) {
  Graph graph("main");
  Value* const x = graph.add_input("x", f32({Dim("N"), 10}));
  Value* const w = graph.add_initializer("w", Tensor::zeros(DType::f32, {5, 10}));
  Value* const axes = graph.add_initializer("axes", Tensor::from<std::int64_t>({2}, {0, -1}));
  graph.add_initializer("m", Tensor::zeros(DType::i64, {2}))->is_variable = true;
  Node* const gemm = graph.add_node("Gemm", "", {x, w, nullptr}, {"h"}, {{"transB", 1}});
  gemm->output()->set_type(f32({Dim("N"), 5}));
  gemm->set_name("fc");
  Node* const pool =
      graph.add_node("MaxPoolGrad", "ai.graft", {gemm->output(), axes}, {"y", "", "rest"});
  pool->output()->set_type({DType::f32});
  graph.add_output(pool->output());
  const std::string_view wanted = R"(main(x: f32[N,10]) -> (y: f32)
  w: f32[5,10] = initializer
  axes: i64[2] = {0, -1}
  m: i64[2] = variable
  h: f32[N,5] = Gemm(x, w, _) {transB = 1}
  y: f32, _, rest: ? = ai.graft.MaxPoolGrad(h, axes)
)";
  EXPECT_EQ(print(graph), wanted);
  EXPECT_NE(print(graph, {.node_names = true}).find("{transB = 1}  # fc\n"), std::string::npos);
  EXPECT_NE(print(graph, {.most_elements = 1}).find("axes: i64[2] = initializer\n"),
            std::string::npos);
}

TEST(Print, BodiesAreIndented) {
  EXPECT_EQ(print(*branching()), R"(main(x: f32[2], c: bool[]) -> (z: f32[2])
  w: f32[2] = initializer
  y: f32[2] = If(c)
    then_branch = then() -> (t: f32[2])
      t: f32[2] = Neg(x)
    else_branch = else() -> (x: f32[2])
  z: f32[2] = Mul(y, w)
)");
}

TEST(Print, EveryKindOfAttribute) {
  Graph graph("g");
  auto first = std::make_shared<Graph>("one", &graph);
  auto second = std::make_shared<Graph>("two", &graph);
  Attribute reference("alpha", 0);
  reference.reference = "outer_alpha";
  graph.add_node("Op", "", {}, {"y"},
                 {{"i", -3},
                  {"f", 0.1F},
                  {"s", "a \"b\"\n\x01"},
                  {"ints", std::vector<std::int64_t>{1, 2}},
                  {"floats", std::vector<float>{1, 1e-20F}},
                  {"strings", std::vector<std::string>{"a", ""}},
                  {"t", Tensor::from<float>({2}, {1, 2})},
                  {"ts", std::vector<Tensor>{Tensor::scalar(0.5), Tensor::scalar(true)}},
                  reference,
                  {"o", OpaqueValue{}},
                  {"bodies", std::vector<std::shared_ptr<Graph>>{first, second}}});
  EXPECT_EQ(print(graph),
            "g() -> ()\n"
            R"(  y: ? = Op() {i = -3, f = 0.1, s = "a \"b\"\n\x01", ints = [1, 2], )"
            R"(floats = [1.0, 1e-20], strings = ["a", ""], t = f32[2], )"
            "ts = [f64[]{0.5}, bool[]{true}], alpha = @outer_alpha, o = opaque}\n"
            "    bodies[0] = one() -> ()\n"
            "    bodies[1] = two() -> ()\n");
}

TEST(Print, FloatsReadBackAsTheSameNumber) {
  for (const float value : {0.1F, 1.0F / 3, 16777216.0F, std::numeric_limits<float>::denorm_min(),
                            -std::numeric_limits<float>::max()}) {
    Graph graph("g");
    graph.add_node("Op", "", {}, {"y"}, {{"f", value}});
    const std::string text = print(graph);
    EXPECT_EQ(std::strtof(text.c_str() + text.find("f = ") + 4, nullptr), value) << text;
  }
  Graph graph("g");
  graph.add_initializer("a", Tensor::scalar(std::numeric_limits<float>::infinity()));
  graph.add_initializer("b", Tensor::full(DType::bf16, {}, -2));
  EXPECT_EQ(print(graph), "g() -> ()\n  a: f32[] = {inf}\n  b: bf16[] = {-2.0}\n");
}

TEST(Print, NamesThatWouldMisleadAreQuoted) {
  Graph graph("my graph");
  graph.add_input("_", {});
  graph.add_input("a,b", {});
  graph.add_input("/layer/conv.1:0", {});
  graph.add_input("\x7f", {});
  EXPECT_EQ(print(graph), R"("my graph"("_": ?, "a,b": ?, /layer/conv.1:0: ?, "\x7f": ?) -> ())"
                          "\n");
}

TEST(Print, InputsWithDefaultsShowThem) {
  Graph graph("g");
  graph.add_input("k", {DType::i64, SymShape{1}});
  graph.add_initializer("k", Tensor::from<std::int64_t>({1}, {7}));
  EXPECT_EQ(print(graph), "g(k: i64[1] = {7}) -> ()\n");
}

TEST(Print, ModelShowsOpsetsAndFunctions) {
  Model model;
  model.set_opset("", 17);
  model.set_opset("local", 1);
  auto twice = std::make_unique<Graph>("Twice");
  Value* const x = twice->add_input("x", {});
  twice->add_output(twice->add_node("Add", "", {x, x}, {"y"})->output());
  model.functions.push_back(
      {"local", "Twice", {"axis"}, {{"scale", 2.0F}}, {{"", 17}}, std::move(twice)});
  model.set_graph(chain());
  EXPECT_EQ(print(model), R"(opset ai.onnx 17
opset local 1
function local.Twice {axis, scale = 2.0}
  opset ai.onnx 17
  Twice(x: ?) -> (y: ?)
    y: ? = Add(x, x)
main(x: f32[2]) -> (y: f32[2])
  w: f32[2] = initializer
  h: f32[2] = Mul(x, w)
  y: f32[2] = Relu(h)
)");
}

}  // namespace
}  // namespace graft

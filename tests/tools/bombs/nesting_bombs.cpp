#include "tests/tools/bombs/bomb.h"

namespace graft::testing {
namespace {

Value* add(Graph& graph, std::string_view op, const std::vector<Value*>& inputs,
           Attributes attributes = {}) {
  Node* const node = graph.add_node(op, "", inputs, {graph.unique_name(op)}, std::move(attributes));
  return node->output();
}

Value* ints(Graph& graph, const std::vector<std::int64_t>& values) {
  return graph.add_initializer("",
                               Tensor::from({static_cast<std::int64_t>(values.size())}, values));
}

/// 60 MiB, reduced to one number and added to `sum`.
Value* add_large(Graph& graph, Value* sum) {
  Value* const large = add(graph, "ConstantOfShape", {ints(graph, {3900, 3900})});
  return add(graph, "Add", {sum, add(graph, "ReduceSum", {large}, {{"keepdims", 0}})});
}

Attribute body(std::string_view name, std::shared_ptr<Graph> graph) {
  return {name, AttributeValue(std::move(graph))};
}

/// Both branches hold an If again, `depth` deep.
Value* add_if(Graph& graph, int depth) {
  if (depth == 0) return add_large(graph, add(graph, "Constant", {}, {{"value_float", 1.0F}}));
  Value* const yes = add(graph, "Not", {graph.add_initializer("", Tensor::scalar(false))});
  auto taken = std::make_shared<Graph>("taken" + std::to_string(depth), &graph);
  taken->add_output(add_large(*taken, add_if(*taken, depth - 1)));
  auto other = std::make_shared<Graph>("other" + std::to_string(depth), &graph);
  other->add_output(add(*other, "Constant", {}, {{"value_float", 1.0F}}));
  return add(graph, "If", {yes},
             {body("then_branch", std::move(taken)), body("else_branch", std::move(other))});
}

Model nested_branches() {
  BombBuilder b;
  b.add(add_if(b.graph(), 40));
  return b.finish();
}

/// Each condition is what the branch before it computes.
Model branches_in_a_row() {
  BombBuilder b;
  Graph& graph = b.graph();
  Value* go = graph.add_initializer("go", Tensor::scalar(true));
  for (int i = 0; i < 3000; ++i) {
    const std::string number = std::to_string(i);
    auto taken = std::make_shared<Graph>("taken" + number, &graph);
    Value* const no = add(*taken, "Not", {go});
    taken->add_output(add(*taken, "Not", {no}));
    auto other = std::make_shared<Graph>("other" + number, &graph);
    other->add_output(add(*other, "Not", {go}));
    go = add(graph, "If", {go},
             {body("then_branch", std::move(taken)), body("else_branch", std::move(other))});
  }
  b.add(b.op("Cast", {go}, {{"to", 1}}));
  return b.finish();
}

std::shared_ptr<Graph> loop_body(Graph& outer, int depth) {
  auto graph = std::make_shared<Graph>("body" + std::to_string(depth), &outer);
  graph->add_input("", {DType::i64, SymShape{}});
  Value* const go = graph->add_input("", {DType::boolean, SymShape{}});
  Value* const state = graph->add_input("", {DType::f32, SymShape{}});
  graph->add_output(add(*graph, "Identity", {go}));
  Value* sum = add_large(*graph, state);
  if (depth > 0) {
    Value* const turns = graph->add_initializer("", Tensor::scalar<std::int64_t>(1));
    sum = add(*graph, "Loop", {turns, nullptr, sum}, {body("body", loop_body(*graph, depth - 1))});
  }
  graph->add_output(sum);
  return graph;
}

Model looped(int depth, std::int64_t turns) {
  BombBuilder b;
  Graph& graph = b.graph();
  Value* const count = graph.add_initializer("turns", Tensor::scalar(turns));
  b.add(add(graph, "Loop", {count, nullptr, b.number(0)}, {body("body", loop_body(graph, depth))}));
  return b.finish();
}

Model nested_loops() {
  return looped(30, 1);
}

Model long_loop() {
  return looped(0, 3000);
}

Model endless_loop() {
  return looped(0, std::int64_t{1} << 60);
}

/// A turn for each of 100,000 numbers that the graph makes.
Model long_scan() {
  BombBuilder b;
  Graph& graph = b.graph();
  auto turn = std::make_shared<Graph>("turn", &graph);
  Value* const state = turn->add_input("", {DType::f32, SymShape{}});
  Value* const one = turn->add_input("", {DType::f32, SymShape{}});
  turn->add_output(add_large(*turn, state));
  turn->add_output(add(*turn, "Identity", {one}));
  Node* const scan = graph.add_node("Scan", "", {b.number(0), b.zeros({2500})}, {"last", "all"},
                                    {{"num_scan_inputs", 1}, body("body", std::move(turn))});
  b.add(scan->output(0));
  b.add(scan->output(1));
  return b.finish();
}

/// f0(x) = add_large(x) or x + 1; f1 calls f0 twice, f2 calls f1 twice, ...
Model functions_doubled(bool is_large, int levels) {
  BombBuilder b;
  for (int level = 0; level < levels; ++level) {
    Function function{.domain = "my", .name = "f" + std::to_string(level)};
    function.opset_imports = {{"", 21}, {"my", 1}};
    function.body = std::make_unique<Graph>(function.name);
    Graph& graph = *function.body;
    Value* x = graph.add_input("x", {});
    if (level > 0) {
      const std::string callee = "f" + std::to_string(level - 1);
      for (const char* name : {"once", "twice"}) {
        x = graph.add_node(callee, "my", {x}, {name})->output();
      }
    } else if (is_large) {
      Value* const shape =
          add(graph, "Constant", {}, {{"value_ints", std::vector<std::int64_t>{3900, 3900}}});
      Value* const large = add(graph, "ConstantOfShape", {shape});
      x = add(graph, "Add", {x, add(graph, "ReduceSum", {large}, {{"keepdims", 0}})});
    } else {
      x = add(graph, "Relu", {x});
    }
    graph.add_output(x);
    b.model().functions.push_back(std::move(function));
  }
  b.model().set_opset("my", 1);
  Node* const call =
      b.graph().add_node("f" + std::to_string(levels - 1), "my", {b.number(1)}, {"called"});
  call->output()->set_type({DType::f32, SymShape{}});
  b.add(call->output());
  return b.finish();
}

Model functions_of_large_tensors() {
  return functions_doubled(true, 10);
}

Model functions_of_millions_of_nodes() {
  return functions_doubled(false, 40);
}

}  // namespace

std::vector<Bomb> nesting_bombs() {
  return {{"nested_branches", nested_branches},
          {"branches_in_a_row", branches_in_a_row},
          {"nested_loops", nested_loops},
          {"long_loop", long_loop},
          {"endless_loop", endless_loop},
          {"long_scan", long_scan},
          {"functions_of_large_tensors", functions_of_large_tensors},
          {"functions_of_millions_of_nodes", functions_of_millions_of_nodes}};
}

}  // namespace graft::testing

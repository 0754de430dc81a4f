#include "core/graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/rng.h"
#include "core/graph/edit.h"
#include "core/graph/print.h"
#include "tests/core/error_of.h"
#include "tests/core/graph/small_graphs.h"

namespace graft {
namespace {

using testing::HasSubstr;

/// Expects verify to refuse the graph with a text that holds `part`.
void expect_fault(const Graph& graph, const std::string& part) {
  const Error error = error_of([&] { verify(graph); });
  EXPECT_EQ(error.kind(), ErrorKind::model);
  EXPECT_THAT(error.what(), HasSubstr(part));
}

TEST(Verify, AcceptsWhatIsWhole) {
  verify(*chain());
  const auto graph = branching();
  verify(*graph);
  verify(body(*graph, "then_branch"));
  verify(Graph());
}

TEST(Verify, FindsAReaderBeforeItsProducer) {
  const auto graph = chain();
  graph->move(graph->nodes().front().get(), nullptr);
  expect_fault(*graph, "graph 'main': Relu node producing 'y' reads 'h'");
}

TEST(Verify, FindsANodeThatReadsItself) {
  const auto graph = chain();
  graph->nodes().front()->set_input(0, graph->find("h"));
  expect_fault(*graph, "Mul node producing 'h' reads 'h'");
}

TEST(Verify, FindsABodyThatReadsWhatComesLater) {
  const auto graph = branching();
  body(*graph, "then_branch").nodes().front()->set_input(0, graph->find("z"));
  expect_fault(*graph, "graph 'then': Neg node producing 't' reads 'z' of graph 'main'");
}

TEST(Verify, FindsAReaderOfAnotherBodysValue) {
  const auto graph = branching();
  graph->nodes().back()->set_input(1, body(*graph, "then_branch").find("t"));
  expect_fault(*graph, "reads 't' of graph 'then', which is not computed before it or not visible");
  graph->nodes().back()->set_input(1, graph->find("w"));
  body(*graph, "else_branch").set_outputs({body(*graph, "then_branch").find("t")});
  expect_fault(*graph, "graph 'else': the list of outputs reads 't'");
}

TEST(Verify, FindsAReaderOfAnotherGraph) {
  const auto other = chain();
  const auto graph = chain();
  graph->nodes().back()->set_input(0, other->find("h"));
  expect_fault(*graph, "reads 'h' of graph 'main', which is not computed before it");
}

TEST(Verify, FindsANearerValueOfTheSameName) {
  const auto graph = branching();
  body(*graph, "then_branch").add_initializer("x", Tensor::scalar(1.0F));
  expect_fault(*graph, "but by name it finds a nearer value; rename one of them");
}

TEST(Verify, FindsAnInitializerOfAnotherTypeThanDeclared) {
  for (const ValueType& wrong : {ValueType{DType::i32, SymShape{2}}, f32({3}), f32({2, 1})}) {
    const auto graph = chain();
    graph->find("w")->set_type(wrong);
    expect_fault(*graph, "initializer 'w' is f32[2], but declared as " + text(wrong));
  }
  const auto graph = chain();
  graph->find("w")->set_type({DType::f32, SymShape{Dim("K")}});
  verify(*graph);
  graph->find("w")->set_type({DType::f32});
  verify(*graph);
}

TEST(Verify, FindsAnAttributeNamedTwice) {
  const auto graph = chain();
  graph->nodes().front()->attributes = Attributes{{"axis", 1}, {"axis", 2}};
  expect_fault(*graph, "two attributes named 'axis'");
}

TEST(Verify, FindsABodyOfTwoNodes) {
  const auto graph = branching();
  Node* const branch = graph->nodes().front().get();
  graph->add_node("If", "", {graph->find("c")}, {"again"}, branch->attributes);
  expect_fault(*graph, "graph 'then': it is the body of two nodes");
}

TEST(Verify, NodesOfAGraphMayShareABodyThatReadsItsOwnValuesAlone) {
  const auto graph = chain();
  const auto body = std::make_shared<Graph>("shared", graph.get());
  body->add_output(body->add_node("Neg", "", {body->add_input("in", {})}, {"out"})->output());
  Value* const x = graph->find("x");
  graph->add_node("Chain", "", {x}, {"one"}, {{"body", body}});
  graph->add_node("Chain", "", {x}, {"other"}, {{"body", body}});
  verify(*graph);
  body->add_output(x);
  expect_fault(*graph, "graph 'shared': it is the body of two nodes");
  body->set_outputs({body->find("out")});
  body->set_parent(nullptr);
  expect_fault(*graph, "body 'shared' of Chain node producing 'one'");
  body->set_parent(graph.get());
  Graph stranger("stranger");
  stranger.add_node("Chain", "", {stranger.add_input("z", {})}, {"n"}, {{"body", body}});
  expect_fault(stranger, "body 'shared' of Chain node producing 'n'");
}

TEST(Verify, FindsABodyWithAnotherParent) {
  const auto graph = branching();
  body(*graph, "else_branch").set_parent(nullptr);
  expect_fault(*graph, "body 'else' of If node producing 'y'");
}

TEST(Verify, FindsReadersOutsideTheGraph) {
  const auto graph = chain();
  Graph stranger("stranger");
  stranger.add_node("Neg", "", {graph->find("x")}, {"n"});
  expect_fault(*graph, "the use list of 'x' holds a reader that does not read it");
  stranger.remove(stranger.nodes().front().get());
  stranger.add_output(graph->find("h"));
  expect_fault(*graph, "'h' is marked as graph output");
  stranger.set_outputs({});
  verify(*graph);
}

TEST(VerifyModel, FindsRepeatedOpsetsAndFunctions) {
  Model model;
  model.set_graph(chain());
  model.opset_imports = {{"", 17}, {"local", 1}};
  verify(model);
  model.opset_imports.push_back({"ai.onnx", 18});
  EXPECT_THAT(error_of([&] { verify(model); }).what(), HasSubstr("two opsets of domain 'ai.onnx'"));
  model.opset_imports.pop_back();
  for (int i = 0; i < 2; ++i) {
    model.functions.push_back({.domain = "local", .name = "F", .body = chain()});
  }
  EXPECT_THAT(error_of([&] { verify(model); }).what(), HasSubstr("two functions named 'F'"));
  model.functions.pop_back();
  verify(model);
  model.functions[0].body->move(model.functions[0].body->nodes().front().get(), nullptr);
  EXPECT_EQ(kind_of([&] { verify(model); }), ErrorKind::model);
  model.functions[0].body.reset();
  EXPECT_THAT(error_of([&] { verify(model); }).what(), HasSubstr("'F' has no body"));
}

/// Makes random changes through the public interface, as a pass would.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {
    graph_->add_input("x", f32({2}));
    graph_->add_output(graph_->inputs()[0]);
  }

  void step() {
    switch (pick(10)) {
      case 0:
        graph_->add_initializer("", Tensor::scalar(1.0F));
        break;
      case 1:
      case 2:
        add_node();
        break;
      case 3:
        add_branch();
        break;
      case 4:
        remove_node();
        break;
      case 5:
        replace_uses();
        break;
      case 6:
        reconnect();
        break;
      case 7:
        graph_->rename(any(), graph_->unique_name("renamed"));
        break;
      case 8:
        graph_->set_outputs({any(), any()});
        break;
      default:
        drop_or_copy();
    }
  }
  const Graph& graph() const { return *graph_; }

 private:
  std::uint64_t pick(std::size_t bound) { return random_.below(next_++, bound); }

  /// The values that a node before `before` may read; all when null.
  std::vector<Value*> visible(const Node* before) const {
    std::vector<Value*> values = graph_->inputs();
    values.insert(values.end(), graph_->initializers().begin(), graph_->initializers().end());
    for (const auto& node : graph_->nodes()) {
      if (node.get() == before) break;
      for (int i = 0; i < node->output_count(); ++i) {
        if (node->output(i) != nullptr) values.push_back(node->output(i));
      }
    }
    return values;
  }
  Value* any(const Node* before = nullptr) {
    const std::vector<Value*> values = visible(before);
    return values[pick(values.size())];
  }
  Node* any_node() {
    if (graph_->node_count() == 0) return nullptr;
    return std::next(graph_->nodes().begin(),
                     static_cast<std::ptrdiff_t>(pick(graph_->node_count())))
        ->get();
  }

  void add_node() {
    Node* const before = pick(2) == 0 ? any_node() : nullptr;
    std::vector<Value*> inputs{any(before), nullptr, any(before)};
    graph_->add_node("Op", "", inputs, {graph_->unique_name("v"), "", graph_->unique_name("w")}, {},
                     before);
  }
  void add_branch() {
    Node* const before = pick(2) == 0 ? any_node() : nullptr;
    auto inner = std::make_shared<Graph>("body", graph_.get());
    Value* const read = any(before);
    inner->add_node("Op", "", {read, any(before)}, {graph_->unique_name("inner")});
    inner->add_output(pick(2) == 0 ? read : inner->nodes().front()->output());
    graph_->add_node("If", "", {any(before)}, {graph_->unique_name("b")}, {{"body", inner}},
                     before);
  }
  void remove_node() {
    Node* const node = any_node();
    if (node == nullptr) return;
    bool is_used = false;
    for (int i = 0; i < node->output_count(); ++i) {
      is_used = is_used || (node->output(i) != nullptr && !node->output(i)->is_unused());
    }
    if (is_used) {
      EXPECT_EQ(kind_of([&] { graph_->remove(node); }), ErrorKind::argument);
    } else {
      graph_->remove(node);
    }
  }
  void replace_uses() {
    Node* const node = any_node();
    if (node != nullptr) graph_->replace_all_uses(node->output(0), any(node));
  }
  void reconnect() {
    Node* const node = any_node();
    if (node == nullptr) return;
    const int index = static_cast<int>(pick(4));
    node->set_input(index, pick(4) == 0 ? nullptr : any(node));
    node->trim_inputs();
  }
  void drop_or_copy() {
    if (pick(3) == 0) {
      edit::remove_unused(*graph_);
    } else {
      graph_ = graph_->clone();
    }
  }

  Philox random_;
  std::uint64_t next_ = 0;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>("main");
};

TEST(Verify, HoldsAfterManyRandomChanges) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Mutator mutator(seed);
    std::size_t most_nodes = 0;
    for (int i = 0; i < 300; ++i) {
      mutator.step();
      most_nodes = std::max(most_nodes, mutator.graph().node_count());
      ASSERT_NO_THROW(verify(mutator.graph())) << "seed " << seed << ", step " << i << '\n'
                                               << print(mutator.graph());
    }
    EXPECT_GT(most_nodes, 3U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace graft

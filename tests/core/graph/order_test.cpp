#include "core/graph/order.h"

#include <gmock/gmock.h>

#include "core/graph/verify.h"
#include "tests/core/error_of.h"

namespace graft {
namespace {

using testing::HasSubstr;

class OrderTest : public testing::Test {
 protected:
  OrderTest() {
    Value* const x = graph_.add_input("x", {DType::f32, SymShape{2}});
    a_ = graph_.add_node("Exp", "", {x}, {"a"});
    b_ = graph_.add_node("Abs", "", {x}, {"b"});
    c_ = graph_.add_node("Add", "", {a_->output(), b_->output()}, {"c"});
    graph_.add_output(c_->output());
  }

  Graph graph_;
  Node* a_;
  Node* b_;
  Node* c_;
};

TEST_F(OrderTest, IndependentNodesChangePlaces) {
  reorder(graph_, {b_, a_, c_});
  EXPECT_EQ(node_order(graph_), (std::vector<Node*>{b_, a_, c_}));
  verify(graph_);
}

TEST_F(OrderTest, RefusesAReaderBeforeItsProducer) {
  const Error error = error_of([&] { reorder(graph_, {a_, c_, b_}); });
  EXPECT_EQ(error.kind(), ErrorKind::argument);
  EXPECT_THAT(error.what(), HasSubstr("would run before"));
  EXPECT_EQ(node_order(graph_), (std::vector<Node*>{a_, b_, c_}));
}

TEST_F(OrderTest, RefusesAnOrderThatIsNotOneOfAllNodes) {
  EXPECT_EQ(kind_of([&] { reorder(graph_, {a_, b_}); }), ErrorKind::argument);
  EXPECT_EQ(kind_of([&] { reorder(graph_, {a_, a_, c_}); }), ErrorKind::argument);
  Graph other;
  Node* const strange = other.add_node("Exp", "", {}, {"y"});
  EXPECT_EQ(kind_of([&] { reorder(graph_, {a_, b_, strange}); }), ErrorKind::argument);
}

}  // namespace
}  // namespace graft

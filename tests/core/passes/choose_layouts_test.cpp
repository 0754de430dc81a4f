#include <gtest/gtest.h>

#include "core/graph/print.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"

namespace graft {
namespace {

bool has_layout_kernels() {
  for (const KernelDef& def : KernelRegistry::instance().find(DeviceKind::cpu, "Conv", "")) {
    if (def.knows_layouts) return true;
  }
  return false;
}

class ChooseLayouts : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_layout_kernels()) GTEST_SKIP() << "built without oneDNN: no kernel knows layouts";
    x_ = graph_.add_input("x", {DType::f32, SymShape(Shape({2, 3, 4, 4}))});
    w_ = graph_.add_initializer("w", Tensor::zeros(DType::f32, {3, 3, 1, 1}));
  }
  Value* add(std::string_view op, const std::vector<Value*>& inputs, const std::string& output,
             Attributes attributes = {}) {
    return graph_.add_node(op, "", inputs, {output}, std::move(attributes))->output();
  }
  std::string chosen() {
    passes::infer_shapes(graph_);
    passes::choose_layouts(graph_, cpu());
    return print(graph_);
  }

  Graph graph_{"net"};
  Value* x_ = nullptr;
  Value* w_ = nullptr;
};

TEST_F(ChooseLayouts, ConvolutionsAndWhatIsBetweenThemAreChannelsLast) {
  Value* const c = add("Conv", {x_, w_}, "c");
  Value* const r = add("Relu", {c}, "r");
  Value* const d = add("Conv", {r, w_}, "d");
  Value* const flat = add("Flatten", {d}, "flat");
  graph_.add_output(flat);
  EXPECT_EQ(chosen(), R"(net(x: f32[2,3,4,4]) -> (flat: f32[2,48])
  w: f32[3,3,1,1] = initializer
  c: f32[2,3,4,4] nhwc = Conv(x, w)
  r: f32[2,3,4,4] nhwc = Relu(c)
  d: f32[2,3,4,4] = Conv(r, w)
  flat: f32[2,48] = Flatten(d)
)");
}

/// The sum of channels [3,4,4] broadcasts over the batch: that op stays row-major.
TEST_F(ChooseLayouts, ACopyStandsWhereLayoutsMeet) {
  Value* const bias = graph_.add_initializer("bias", Tensor::zeros(DType::f32, {3, 4, 4}));
  Value* const c = add("Conv", {x_, w_}, "c");
  Value* const r = add("Relu", {c}, "r");
  Value* const d = add("Conv", {r, w_}, "d");
  Value* const e = add("Conv", {r, w_}, "e");
  Value* const f = add("Add", {r, bias}, "f");
  for (Value* output : {d, e, f}) graph_.add_output(output);
  EXPECT_EQ(chosen(),
            R"(net(x: f32[2,3,4,4]) -> (d: f32[2,3,4,4], e: f32[2,3,4,4], f: f32[2,3,4,4])
  w: f32[3,3,1,1] = initializer
  bias: f32[3,4,4] = initializer
  c: f32[2,3,4,4] nhwc = Conv(x, w)
  r: f32[2,3,4,4] nhwc = Relu(c)
  d: f32[2,3,4,4] = Conv(r, w)
  e: f32[2,3,4,4] = Conv(r, w)
  relayout: f32[2,3,4,4] = ai.graft.Relayout(r)
  f: f32[2,3,4,4] = Add(relayout, bias)
)");
}

/// [1,4,5] lies the same in both layouts as [1,1,4,5], but not as an image of its own.
TEST_F(ChooseLayouts, AnOperandOfFewerAxesIsReadAsItLies) {
  Value* const image = graph_.add_input("image", {DType::f32, SymShape(Shape({2, 3, 4, 5}))});
  Value* const factor = graph_.add_input("factor", {DType::f32, SymShape(Shape({1, 4, 5}))});
  Value* const twice = add("Add", {factor, factor}, "twice");
  Value* const c = add("Conv", {image, w_}, "c");
  Value* const m = add("Mul", {c, twice}, "m");
  graph_.add_output(add("Conv", {m, w_}, "d"));
  const std::string text = chosen();
  EXPECT_EQ(twice->layout, Layout::row_major) << text;
  EXPECT_EQ(m->producer()->input(1), twice) << text;
  EXPECT_EQ(m->layout, Layout::channels_last) << text;
}

/// [3,4,4] has the shape of an image in a batch of 1 but for that axis.
TEST_F(ChooseLayouts, AnOperandThatLacksABatchOfOneKeepsTheOpRowMajor) {
  Value* const image = graph_.add_input("image", {DType::f32, SymShape(Shape({1, 3, 4, 4}))});
  Value* const bias = graph_.add_initializer("bias", Tensor::zeros(DType::f32, {3, 4, 4}));
  Value* const c = add("Conv", {image, w_}, "c");
  Value* const s = add("Add", {c, bias}, "s");
  graph_.add_output(add("Conv", {s, w_}, "d"));
  const std::string text = chosen();
  EXPECT_EQ(s->layout, Layout::row_major) << text;
  EXPECT_EQ(s->producer()->input(1), bias) << text;
}

TEST_F(ChooseLayouts, NothingChangesWithoutAConvolution) {
  graph_.add_output(add("Relu", {x_}, "r"));
  passes::infer_shapes(graph_);
  EXPECT_FALSE(passes::choose_layouts(graph_, cpu()));
}

}  // namespace
}  // namespace graft

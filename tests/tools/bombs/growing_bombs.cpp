#include "tests/tools/bombs/bomb.h"

namespace graft::testing {
namespace {

/// Each of `count` results holds 60 MiB: alone it is small enough to be folded.
constexpr int kMany = 150;
constexpr std::int64_t kSide = 3900;

/// value := op(value, value), `count` times.
Model doubling(BombBuilder& b, Value* value, std::string_view op, Attributes attributes,
               int count) {
  for (int i = 0; i < count; ++i) value = b.op(op, {value, value}, attributes);
  b.add(value);
  return b.finish();
}

Model strings_doubled() {
  BombBuilder b;
  return doubling(b, b.texts({1}, "0123456789abcdef"), "StringConcat", {}, 40);
}

Model lists_of_strings_doubled() {
  BombBuilder b;
  return doubling(b, b.texts({1000}, "0123456789abcdef"), "StringConcat", {}, 22);
}

Model strings_doubled_one_by_one() {
  BombBuilder b;
  Value* text = b.texts({1}, "0123456789abcdef");
  for (int i = 0; i < 30; ++i) {
    text = b.op("StringConcat", {text, text});
    b.add(text);
  }
  return b.finish();
}

Model strings_broadcast() {
  BombBuilder b;
  Value* const column = b.texts({2000, 1}, "a");
  Value* const row = b.texts({1, 2000}, "b");
  Value* const table = b.op("StringConcat", {column, row});
  for (int i = 0; i < 12; ++i) b.add(b.op("StringConcat", {table, b.texts({}, "c")}));
  return b.finish();
}

Model strings_broadcast_to_billions() {
  BombBuilder b;
  b.add(b.op("StringConcat", {b.texts({5000, 1}, ""), b.texts({1, 5000}, "")}));
  b.add(b.op("StringConcat", {b.texts({1, 1, 5000}, ""), b.texts({60, 60, 1}, "")}));
  return b.finish();
}

/// One string of n parts among n strings: n^2 of them.
Model strings_split() {
  BombBuilder b;
  std::vector<std::string> texts(8000, "a");
  texts.front() = std::string(8000, ',');
  Value* const x = b.graph().add_initializer("texts", Tensor::from_strings({8000}, texts));
  for (int i = 0; i < 4; ++i) {
    b.add(b.op("StringSplit", {x}, {{"delimiter", ","}, {"maxsplit", 8000 - i}}, 2));
  }
  return b.finish();
}

Model tiles() {
  BombBuilder b;
  Value* const x = b.zeros({1, kSide});
  for (int i = 0; i < kMany; ++i) b.add(b.op("Tile", {x, b.ints({kSide, 1})}));
  return b.finish();
}

Model tiles_of_tiles() {
  BombBuilder b;
  Value* x = b.number(1);
  x = b.op("Reshape", {x, b.ints({1})});
  for (int i = 0; i < 24; ++i) {
    x = b.op("Tile", {x, b.ints({2})});
    b.add(x);
  }
  return b.finish();
}

Model expanded() {
  BombBuilder b;
  for (int i = 0; i < kMany; ++i) b.add(b.op("Expand", {b.number(2), b.ints({kSide, kSide})}));
  return b.finish();
}

Model filled() {
  BombBuilder b;
  for (int i = 0; i < kMany; ++i) b.add(b.zeros({kSide, kSide}));
  return b.finish();
}

Model ranges() {
  BombBuilder b;
  for (int i = 0; i < kMany; ++i) {
    b.add(b.op("Range", {b.number(0), b.number(15e6F), b.number(1)}));
  }
  return b.finish();
}

Model one_hot() {
  BombBuilder b;
  Value* const places = b.op("Cast", {b.zeros({kSide})}, {{"to", 7}});
  Value* const values = b.graph().add_initializer("off_on", Tensor::from<float>({2}, {0, 1}));
  for (int i = 0; i < kMany; ++i) b.add(b.op("OneHot", {places, b.ints({kSide}), values}));
  return b.finish();
}

Model identities() {
  BombBuilder b;
  Value* const x = b.zeros({kSide, kSide});
  for (int i = 0; i < kMany; ++i) b.add(b.op("EyeLike", {x}, {{"k", i}}));
  return b.finish();
}

Model padded() {
  BombBuilder b;
  for (int i = 0; i < kMany; ++i) {
    b.add(b.op("Pad", {b.zeros({1, 1}), b.ints({kSide, 1, 1, kSide})}));
  }
  return b.finish();
}

Model resized() {
  BombBuilder b;
  Value* const x = b.zeros({1, 1, 2, 2});
  for (int i = 0; i < kMany; ++i) {
    b.add(
        b.op("Resize", {x, nullptr, nullptr, b.ints({1, 1, kSide, kSide})}, {{"mode", "linear"}}));
  }
  return b.finish();
}

Model outer_products() {
  BombBuilder b;
  for (int i = 0; i < kMany; ++i) b.add(b.op("MatMul", {b.zeros({kSide, 1}), b.zeros({1, kSide})}));
  return b.finish();
}

Model outer_sums() {
  BombBuilder b;
  for (int i = 0; i < kMany; ++i) b.add(b.op("Add", {b.zeros({kSide, 1}), b.zeros({1, kSide})}));
  return b.finish();
}

Model concatenated() {
  BombBuilder b;
  Value* x = b.zeros({1});
  for (int i = 0; i < 24; ++i) {
    x = b.op("Concat", {x, x}, {{"axis", 0}});
    b.add(x);
  }
  return b.finish();
}

Model copies_of_one_tensor() {
  BombBuilder b;
  Value* x = b.zeros({kSide, kSide});
  for (int i = 0; i < kMany; ++i) {
    x = b.op("Sqrt", {x});
    b.add(x);
  }
  return b.finish();
}

Model views_of_one_tensor() {
  BombBuilder b;
  Value* x = b.zeros({kSide, kSide});
  for (int i = 0; i < kMany; ++i) {
    x = b.op("Reshape", {x, b.ints({kSide * (1 + i % 2), -1})});
    b.add(x);
  }
  return b.finish();
}

Model many_outputs() {
  BombBuilder b;
  Value* const x = b.zeros({50, 300'000});
  for (int i = 0; i < 50; ++i) {
    b.add(b.op("Split", {x}, {{"axis", 0}, {"num_outputs", 50}}, 50));
  }
  return b.finish();
}

/// A tensor of rank 100, all of whose places are listed.
Model places_of_high_rank() {
  BombBuilder b;
  std::vector<std::int64_t> dims(100, 1);
  dims.back() = 1'000'000;
  Value* const x = b.op("Add", {b.zeros(Shape(dims)), b.number(1)});
  for (int i = 0; i < 10; ++i) b.add(b.op("NonZero", {x}));
  return b.finish();
}

/// Shapes computed from shapes: of rank eight million.
Model ranks_of_millions() {
  BombBuilder b;
  Value* const ones = b.op("Cast", {b.op("Add", {b.zeros({8'000'000}), b.number(1)})}, {{"to", 7}});
  for (int i = 0; i < 20; ++i) {  // not inferred here
    b.add(b.graph()
              .add_node("Expand", "", {b.number(1), ones}, {"wide" + std::to_string(i)})
              ->output());
  }
  return b.finish();
}

Model long_labels() {
  BombBuilder b;
  Value* const keys = b.op("Cast", {b.zeros({100'000})}, {{"to", 7}});
  for (int i = 0; i < 4; ++i) {
    Node* const node = b.graph().add_node(
        "LabelEncoder", "ai.onnx.ml", {keys}, {"labels" + std::to_string(i)},
        {{"keys_int64s", AttributeValue(std::vector<std::int64_t>{0})},
         {"values_strings", AttributeValue(std::vector<std::string>{std::string(2000, 'a')})}});
    node->output()->set_type({DType::string, SymShape{100'000}});
    b.add(node->output());
  }
  b.model().set_opset("ai.onnx.ml", 4);
  return b.finish();
}

}  // namespace

std::vector<Bomb> growing_bombs() {
  return {{"strings_doubled", strings_doubled},
          {"lists_of_strings_doubled", lists_of_strings_doubled},
          {"strings_doubled_one_by_one", strings_doubled_one_by_one},
          {"strings_broadcast", strings_broadcast},
          {"strings_broadcast_to_billions", strings_broadcast_to_billions},
          {"strings_split", strings_split},
          {"tiles", tiles},
          {"tiles_of_tiles", tiles_of_tiles},
          {"expanded", expanded},
          {"filled", filled},
          {"ranges", ranges},
          {"one_hot", one_hot},
          {"identities", identities},
          {"padded", padded},
          {"resized", resized},
          {"outer_products", outer_products},
          {"outer_sums", outer_sums},
          {"concatenated", concatenated},
          {"copies_of_one_tensor", copies_of_one_tensor},
          {"views_of_one_tensor", views_of_one_tensor},
          {"many_outputs", many_outputs},
          {"places_of_high_rank", places_of_high_rank},
          {"ranks_of_millions", ranks_of_millions},
          {"long_labels", long_labels}};
}

}  // namespace graft::testing

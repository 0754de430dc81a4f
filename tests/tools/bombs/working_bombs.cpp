#include "tests/tools/bombs/bomb.h"

namespace graft::testing {
namespace {

using Ints = std::vector<std::int64_t>;

Model matrix_products() {
  BombBuilder b;
  Value* x = b.zeros({4000, 4000});
  for (int i = 0; i < 30; ++i) x = b.op("MatMul", {x, x});
  b.add(x);
  return b.finish();
}

Model wide_convolution() {
  BombBuilder b;
  for (int i = 0; i < 20; ++i) {
    b.add(b.op("Conv", {b.zeros({1, 1, 2048, 2048}), b.zeros({1, 1, 1024, 1024})}));
  }
  return b.finish();
}

Model wide_pooling() {
  BombBuilder b;
  for (int i = 0; i < 20; ++i) {
    b.add(b.op("MaxPool", {b.zeros({1, 1, 2048, 2048})}, {{"kernel_shape", Ints{1024, 1024}}}));
  }
  return b.finish();
}

Model wide_normalization() {
  BombBuilder b;
  for (int i = 0; i < 20; ++i) {
    b.add(b.op("LRN", {b.zeros({1, 100'000, 4, 4})}, {{"size", 100'001}}));
  }
  return b.finish();
}

Model large_determinants() {
  BombBuilder b;
  for (int i = 0; i < 30; ++i) b.add(b.op("Det", {b.zeros({3000, 3000})}));
  return b.finish();
}

Model sums_over_many_letters() {
  BombBuilder b;
  for (int i = 0; i < 10; ++i) {
    b.add(b.op("Einsum", {b.zeros({3000}), b.zeros({3000}), b.zeros({3000}), b.zeros({3000})},
               {{"equation", "a,b,c,d->"}}));
  }
  return b.finish();
}

Model sampled_regions() {
  BombBuilder b;
  Value* const batch = b.op("Cast", {b.zeros({10})}, {{"to", 7}});
  for (int i = 0; i < 10; ++i) {
    b.add(b.op("RoiAlign", {b.zeros({1, 1, 4, 4}), b.zeros({10, 4}), batch},
               {{"sampling_ratio", 100'000}, {"output_height", 2}, {"output_width", 2}}));
  }
  return b.finish();
}

Model suppressed_boxes() {
  BombBuilder b;
  Value* const scores = b.op("Add", {b.zeros({1, 1, 200'000}), b.number(1)});
  b.add(b.op("NonMaxSuppression", {b.zeros({1, 200'000, 4}), scores, b.ints({200'000})}));
  return b.finish();
}

Model sorted_values() {
  BombBuilder b;
  for (int i = 0; i < 60; ++i) b.add(b.op("Unique", {b.zeros({15'000'000})}, {}, 4));
  return b.finish();
}

Model best_of_many() {
  BombBuilder b;
  for (int i = 0; i < 40; ++i) {
    b.add(b.op("TopK", {b.zeros({15'000'000}), b.ints({15'000'000})}, {}, 2));
  }
  return b.finish();
}

Model sums_of_one_tensor() {
  BombBuilder b;
  Value* const x = b.zeros({3900, 3900});
  for (int i = 0; i < 1000; ++i) b.add(b.op("ReduceMax", {x}));
  return b.finish();
}

Model parts_listed() {
  BombBuilder b;
  Value* const x = b.zeros({1'000'000, 4});
  for (int i = 0; i < 20; ++i) {
    Value* const parts = b.op("SplitToSequence", {x}, {{"axis", 0}});
    b.add(b.op("ConcatFromSequence", {parts}, {{"axis", 0}}));
  }
  return b.finish();
}

Model sequences_of_tensors() {
  BombBuilder b;
  Value* const x = b.zeros({3900, 3900});
  for (int i = 0; i < 20; ++i) {
    Value* const list = b.op("SequenceConstruct", std::vector<Value*>(100, x));
    b.add(b.op("ConcatFromSequence", {list}, {{"axis", 0}}));
  }
  return b.finish();
}

/// What the input decides is planned: with a table each.
Model tables_of_plans() {
  BombBuilder b;
  Value* x = b.graph().find("x");
  for (int i = 0; i < 40; ++i) {
    b.add(b.op("Resize",
               {b.op("Reshape", {x, b.ints({1, 1, 2, 2})}), nullptr, nullptr,
                b.ints({1, 1, 2, 20'000'000 + i})},
               {{"mode", "cubic"}}));
  }
  return b.finish();
}

Model patterns_that_branch() {
  BombBuilder b;
  Value* const texts = b.texts({50}, std::string(2000, 'a'));
  for (int i = 0; i < 30; ++i) {
    b.add(b.op("RegexFullMatch", {texts}, {{"pattern", "(a|a|a|aa|aaa)*(a|a)*(a?){50}b"}}));
  }
  return b.finish();
}

Model recurrences() {
  BombBuilder b;
  for (int i = 0; i < 10; ++i) {
    b.add(b.op("RNN", {b.zeros({1'000'000, 1, 4}), b.zeros({1, 1000, 4}), b.zeros({1, 1000, 1000})},
               {{"hidden_size", 1000}}, 2));
  }
  return b.finish();
}

Model scattered() {
  BombBuilder b;
  Value* const indices = b.op("Cast", {b.zeros({2'000'000, 1})}, {{"to", 7}});
  Value* x = b.zeros({7'000'000});
  for (int i = 0; i < 60; ++i) {
    x = b.op("ScatterND", {x, indices, b.zeros({2'000'000})}, {{"reduction", "add"}});
    b.add(x);
  }
  return b.finish();
}

}  // namespace

std::vector<Bomb> working_bombs() {
  return {{"matrix_products", matrix_products},
          {"wide_convolution", wide_convolution},
          {"wide_pooling", wide_pooling},
          {"wide_normalization", wide_normalization},
          {"large_determinants", large_determinants},
          {"sums_over_many_letters", sums_over_many_letters},
          {"sampled_regions", sampled_regions},
          {"suppressed_boxes", suppressed_boxes},
          {"sorted_values", sorted_values},
          {"best_of_many", best_of_many},
          {"sums_of_one_tensor", sums_of_one_tensor},
          {"parts_listed", parts_listed},
          {"sequences_of_tensors", sequences_of_tensors},
          {"tables_of_plans", tables_of_plans},
          {"patterns_that_branch", patterns_that_branch},
          {"recurrences", recurrences},
          {"scattered", scattered}};
}

}  // namespace graft::testing

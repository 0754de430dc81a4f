#include "tests/tools/bombs/bomb.h"

namespace graft::testing {
namespace {

using Ints = std::vector<std::int64_t>;

/// The same table for many nodes: each inference goes over it.
Model gathered_by_one_table(std::string_view op, std::int64_t axis_elements) {
  BombBuilder b;
  Value* const places = b.op("Cast", {b.zeros({3'900'000})}, {{"to", 7}});
  for (int i = 0; i < 150; ++i) b.add(b.op(op, {b.zeros({axis_elements}), places}));
  return b.finish();
}

Model scattered_by_one_table() {
  BombBuilder b;
  Value* const places = b.op("Cast", {b.zeros({3'900'000})}, {{"to", 7}});
  Value* const x = b.zeros({3'900'000});
  for (int i = 0; i < 60; ++i) b.add(b.op("ScatterElements", {x, places, x}));
  return b.finish();
}

/// Fourier transforms of what the input decides need tables of their length, or its square.
Model transforms(std::int64_t length, std::int64_t axis_count) {
  BombBuilder b;
  Value* const x = b.op("Reshape", {b.graph().find("x"), b.ints({1, 4, 1})});
  for (std::int64_t i = 0; i < axis_count; ++i) {
    Value* const dft = b.op("DFT", {x, b.ints({length + i})}, {{"onesided", 1}});
    b.add(dft);
  }
  return b.finish();
}

Model frames() {
  BombBuilder b;
  Value* const x =
      b.op("Expand", {b.op("Reshape", {b.graph().find("x"), b.ints({1, 4})}), b.ints({1, 4})});
  Value* const signal = b.op("Tile", {x, b.ints({1, 500'000})});
  Value* const shaped = b.op("Reshape", {signal, b.ints({1, 2'000'000, 1})});
  for (int i = 0; i < 20; ++i) {
    b.add(b.op("STFT", {shaped, b.op("Squeeze", {b.ints({1})}), nullptr,
                        b.op("Squeeze", {b.ints({100'000})})}));
  }
  return b.finish();
}

Model windows(std::string_view op) {
  BombBuilder b;
  for (int i = 0; i < 60; ++i) b.add(b.op(op, {b.op("Squeeze", {b.ints({15'000'000 + i})})}));
  return b.finish();
}

Model mel_weights() {
  BombBuilder b;
  const auto scalar = [&](std::int64_t value) { return b.op("Squeeze", {b.ints({value})}); };
  for (int i = 0; i < 40; ++i) {
    b.add(b.op("MelWeightMatrix",
               {scalar(4'000), scalar(8'000), scalar(16'000), b.number(0), b.number(8'000)}));
  }
  return b.finish();
}

/// Element-wise chains over one tensor that the graph makes.
Model chains_of(std::string_view op) {
  BombBuilder b;
  Value* x = b.zeros({3900, 3900});
  for (int i = 0; i < 150; ++i) {
    x = b.op(op, {x});
    b.add(x);
  }
  return b.finish();
}

Model sums_along() {
  BombBuilder b;
  Value* x = b.zeros({3900, 3900});
  for (int i = 0; i < 150; ++i) {
    x = b.op("CumSum", {x, b.op("Squeeze", {b.ints({i % 2})})});
    b.add(x);
  }
  return b.finish();
}

Model turned() {
  BombBuilder b;
  Value* x = b.zeros({39, 100, 39, 100});
  for (int i = 0; i < 150; ++i) {
    x = b.op("Transpose", {x}, {{"perm", Ints{1, 2, 3, 0}}});
    b.add(x);
  }
  return b.finish();
}

Model compared() {
  BombBuilder b;
  Value* const column = b.zeros({3900, 1});
  Value* const row = b.zeros({1, 3900});
  for (int i = 0; i < 150; ++i) b.add(b.op("Where", {b.op("Less", {column, row}), column, row}));
  return b.finish();
}

Model triangles() {
  BombBuilder b;
  Value* const x = b.zeros({3900, 3900});
  for (int i = 0; i < 150; ++i) b.add(b.op("Trilu", {x, b.op("Squeeze", {b.ints({i})})}));
  return b.finish();
}

Model sampled_grids() {
  BombBuilder b;
  for (int i = 0; i < 60; ++i) {
    b.add(b.op("GridSample", {b.zeros({1, 1, 2, 2}), b.zeros({1, 3900, 3900, 2})}));
  }
  return b.finish();
}

Model columns_to_images() {
  BombBuilder b;
  for (int i = 0; i < 40; ++i) {
    b.add(b.op("Col2Im", {b.zeros({1, 9, 1'440'000}), b.ints({1202, 1202}), b.ints({3, 3})}));
  }
  return b.finish();
}

}  // namespace

std::vector<Bomb> table_bombs() {
  return {
      {"gathers", [] { return gathered_by_one_table("Gather", 10); }},
      {"gathers_of_elements", [] { return gathered_by_one_table("GatherElements", 4'000'000); }},
      {"scattered_by_one_table", scattered_by_one_table},
      {"long_transforms", [] { return transforms(std::int64_t{1} << 28, 20); }},
      {"transforms_of_prime_lengths", [] { return transforms(7'368'787, 60); }},
      {"many_short_transforms", [] { return transforms(4'000, 400); }},
      {"frames", frames},
      {"hann_windows", [] { return windows("HannWindow"); }},
      {"hamming_windows", [] { return windows("HammingWindow"); }},
      {"blackman_windows", [] { return windows("BlackmanWindow"); }},
      {"mel_weights", mel_weights},
      {"error_functions", [] { return chains_of("Erf"); }},
      {"exponentials", [] { return chains_of("Exp"); }},
      {"tangents", [] { return chains_of("Atanh"); }},
      {"softmaxes", [] { return chains_of("Softmax"); }},
      {"sums_along", sums_along},
      {"turned", turned},
      {"compared", compared},
      {"triangles", triangles},
      {"sampled_grids", sampled_grids},
      {"columns_to_images", columns_to_images}};
}

}  // namespace graft::testing

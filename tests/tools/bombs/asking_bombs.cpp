#include <utility>

#include "tests/tools/bombs/bomb.h"

namespace graft::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kHuge = std::int64_t{1} << 40;
constexpr std::int64_t kMost = std::int64_t{1} << 62;
constexpr std::int64_t kInt = (std::int64_t{1} << 31) - 1;

/// A node that may not even be inferred; what it makes is read as f32.
void ask(BombBuilder& b, std::string_view op, const std::vector<Value*>& inputs,
         Attributes attributes, int outputs) {
  Graph& graph = b.graph();
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) names.push_back(text("asked", i));
  Node* const node = graph.add_node(op, "", inputs, names, std::move(attributes));
  Node* const cast = graph.add_node("Cast", "", {node->output()}, {"read"}, {{"to", 1}});
  cast->output()->set_type({DType::f32, {}});
  b.add(cast->output());
}

Value* scalar(BombBuilder& b, std::int64_t value) {
  return b.graph().add_initializer("", Tensor::scalar(value));
}

Value* image(BombBuilder& b) {
  return b.zeros({1, 1, 4, 4});
}

/// One node that asks for much by its numbers.
struct Request {
  const char* name;
  const char* op;
  std::vector<Value*> (*inputs)(BombBuilder&);
  Attributes (*attributes)() = [] { return Attributes{}; };
  int outputs = 1;
};

constexpr Request kRequests[] = {
    {"a_tebi_of_zeros", "ConstantOfShape",
     [](BombBuilder& b) { return std::vector{b.ints({kHuge})}; }},
    {"zeros_without_number", "ConstantOfShape",
     [](BombBuilder& b) {
       return std::vector{b.ints({kMost, kMost})};
     }},
    {"counts_to_the_end", "Range",
     [](BombBuilder& b) {
       return std::vector{scalar(b, 0), scalar(b, kMost), scalar(b, 1)};
     }},
    {"counts_in_tiny_steps", "Range",
     [](BombBuilder& b) {
       return std::vector{b.number(0), b.number(1), b.number(1e-30F)};
     }},
    {"expanded_to_exbis", "Expand",
     [](BombBuilder& b) {
       return std::vector{b.number(1), b.ints({kInt, kInt})};
     }},
    {"repeated_without_end", "Tile",
     [](BombBuilder& b) {
       return std::vector{b.zeros({4}), b.ints({kHuge})};
     }},
    {"padded_far", "Pad",
     [](BombBuilder& b) {
       return std::vector{b.zeros({4}), b.ints({kHuge, kHuge})};
     }},
    {"one_of_tebis", "OneHot",
     [](BombBuilder& b) {
       return std::vector{b.ints({1, 2}), scalar(b, kHuge), b.zeros({2})};
     }},
    {"enlarged", "Resize",
     [](BombBuilder& b) {
       return std::vector<Value*>{image(b), nullptr, nullptr, b.ints({1, 1, kHuge, kHuge})};
     }},
    {"enlarged_by_scale", "Resize",
     [](BombBuilder& b) {
       Value* const scales =
           b.graph().add_initializer("", Tensor::from<float>({4}, {1, 1, 1e18F, 1e18F}));
       return std::vector<Value*>{image(b), nullptr, scales};
     }},
    {"convolution_with_far_pads", "Conv",
     [](BombBuilder& b) {
       return std::vector{image(b), b.zeros({1, 1, 2, 2})};
     },
     [] {
       return Attributes{{"pads", Ints{kInt, kInt, kInt, kInt}}};
     }},
    {"convolution_spread_out", "Conv",
     [](BombBuilder& b) {
       return std::vector{image(b), b.zeros({1, 1, 2, 2})};
     },
     [] {
       return Attributes{{"dilations", Ints{kMost, kMost}}, {"pads", Ints{kHuge, 0, kHuge, 0}}};
     }},
    {"transposed_convolution_in_strides", "ConvTranspose",
     [](BombBuilder& b) {
       return std::vector{image(b), b.zeros({1, 1, 2, 2})};
     },
     [] {
       return Attributes{{"strides", Ints{kInt, kInt}}};
     }},
    {"transposed_convolution_of_a_size", "ConvTranspose",
     [](BombBuilder& b) {
       return std::vector{image(b), b.zeros({1, 1, 2, 2})};
     },
     [] {
       return Attributes{{"output_shape", Ints{kHuge, kHuge}}};
     }},
    {"pooled_by_large_windows", "MaxPool", [](BombBuilder& b) { return std::vector{image(b)}; },
     [] {
       return Attributes{{"kernel_shape", Ints{kInt, kInt}},
                         {"pads", Ints{kInt, kInt, kInt, kInt}}};
     }},
    {"averaged_by_large_windows", "AveragePool",
     [](BombBuilder& b) { return std::vector{image(b)}; },
     [] {
       return Attributes{{"kernel_shape", Ints{2, 2}}, {"pads", Ints{kInt, kInt, kInt, kInt}}};
     }},
    {"image_of_columns", "Col2Im",
     [](BombBuilder& b) {
       return std::vector{b.zeros({1, 4, 4}), b.ints({kInt, kInt}), b.ints({2, 2})};
     }},
    {"normal_numbers", "RandomNormal", [](BombBuilder&) { return std::vector<Value*>{}; },
     [] {
       return Attributes{{"shape", Ints{1 << 20, 1 << 20}}, {"seed", 1.0F}};
     }},
    {"uniform_numbers", "RandomUniform", [](BombBuilder&) { return std::vector<Value*>{}; },
     [] {
       return Attributes{{"shape", Ints{kInt}}};
     }},
    {"drawn_classes", "Multinomial",
     [](BombBuilder& b) {
       return std::vector{b.zeros({1, 4})};
     },
     [] {
       return Attributes{{"sample_size", kInt}};
     }},
    {"frames_of_a_tebi", "STFT",
     [](BombBuilder& b) {
       return std::vector<Value*>{b.zeros({1, 64, 1}), scalar(b, 1), nullptr, scalar(b, kHuge)};
     }},
    {"transform_of_a_length", "DFT",
     [](BombBuilder& b) {
       return std::vector{b.zeros({1, 4, 1}), scalar(b, kMost)};
     }},
    {"endless_window", "HannWindow", [](BombBuilder& b) { return std::vector{scalar(b, kMost)}; }},
    {"endless_bands", "MelWeightMatrix",
     [](BombBuilder& b) {
       return std::vector{scalar(b, kHuge), scalar(b, kHuge), scalar(b, 16'000), b.number(0),
                          b.number(8'000)};
     }},
    {"wide_lstm", "LSTM",
     [](BombBuilder& b) {
       return std::vector{b.zeros({1, 1, 1}), b.zeros({1, 4, 1}), b.zeros({1, 4, 1})};
     },
     [] {
       return Attributes{{"hidden_size", kInt}};
     }},
    {"wide_gru", "GRU",
     [](BombBuilder& b) {
       return std::vector{b.zeros({1, 1, 1}), b.zeros({1, 3, 1}), b.zeros({1, 3, 1})};
     },
     [] {
       return Attributes{{"hidden_size", kMost}};
     }},
    {"neighbours_without_end", "LRN", [](BombBuilder& b) { return std::vector{image(b)}; },
     [] {
       return Attributes{{"size", kMost}};
     }},
    {"regions_of_exbis", "RoiAlign",
     [](BombBuilder& b) {
       return std::vector{image(b), b.zeros({1, 4}), b.ints({0})};
     },
     [] {
       return Attributes{{"output_height", kInt}, {"output_width", kInt}};
     }},
    {"pooled_regions_of_exbis", "MaxRoiPool",
     [](BombBuilder& b) {
       return std::vector{image(b), b.zeros({1, 5})};
     },
     [] {
       return Attributes{{"pooled_shape", Ints{kInt, kInt}}};
     }},
    {"more_than_there_are", "TopK",
     [](BombBuilder& b) {
       return std::vector{b.zeros({4}), b.ints({kMost})};
     },
     [] { return Attributes{}; }, 2},
    {"letters_multiplied_out", "Einsum",
     [](BombBuilder& b) {
       return std::vector<Value*>(4, b.zeros({1000, 1000}));
     },
     [] {
       return Attributes{{"equation", "ab,cd,ef,gh->abcdefgh"}};
     }},
    {"grid_of_exbis", "AffineGrid",
     [](BombBuilder& b) {
       return std::vector{b.zeros({1, 2, 3}), b.ints({1, 1, kInt, kInt})};
     }},
    {"padded_around_the_middle", "CenterCropPad",
     [](BombBuilder& b) {
       return std::vector{b.zeros({4}), b.ints({kHuge})};
     }},
    {"ones_of_a_shape", "EyeLike",
     [](BombBuilder& b) {
       return std::vector{b.op("Expand", {b.zeros({1, 1}), b.ints({90'000, 90'000})})};
     }},
    {"taken_by_a_table", "Gather",
     [](BombBuilder& b) {
       Value* const places = b.op("Cast", {b.zeros({3900, 3900})}, {{"to", 7}});
       return std::vector{b.zeros({1, 3900}), b.op("Add", {places, places})};
     },
     [] {
       return Attributes{{"axis", 1}};
     }},
    {"phrases_with_gaps", "TfIdfVectorizer",
     [](BombBuilder& b) { return std::vector{b.ints(Ints(10'000, 7))}; },
     [] {
       return Attributes{{"max_gram_length", kInt}, {"min_gram_length", 1},
                         {"max_skip_count", kInt},  {"mode", "TF"},
                         {"ngram_counts", Ints{0}}, {"ngram_indexes", Ints{0}},
                         {"pool_int64s", Ints{7}}};
     }},
    {"attention_over_thousands", "Attention",
     [](BombBuilder& b) {
       return std::vector<Value*>(3, b.zeros({1, 8, 12'000, 16}));
     }},
    {"heads_without_number", "Attention",
     [](BombBuilder& b) {
       return std::vector<Value*>(3, b.zeros({1, 4, 16}));
     },
     [] {
       return Attributes{{"q_num_heads", kMost}, {"kv_num_heads", kMost}};
     }},
    {"split_into_many", "SplitToSequence",
     [](BombBuilder& b) {
       return std::vector{b.zeros({15'000'000}), scalar(b, 1)};
     }},
    {"unsqueezed_far", "Unsqueeze",
     [](BombBuilder& b) {
       return std::vector{b.number(1), b.ints({kMost})};
     }},
    {"shifted_blocks", "DepthToSpace", [](BombBuilder& b) { return std::vector{image(b)}; },
     [] {
       return Attributes{{"blocksize", kMost}};
     }},
};

template <std::size_t... I>
std::vector<Bomb> bombs_of(std::index_sequence<I...>) {
  return {{kRequests[I].name, [] {
             BombBuilder b;
             b.model().set_opset("", 23);
             const Request& one = kRequests[I];
             ask(b, one.op, one.inputs(b), one.attributes(), one.outputs);
             return b.finish();
           }}...};
}

}  // namespace

std::vector<Bomb> asking_bombs() {
  return bombs_of(std::make_index_sequence<std::size(kRequests)>());
}

}  // namespace graft::testing

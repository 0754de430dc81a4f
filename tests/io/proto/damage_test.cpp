#include <gtest/gtest.h>

#include <numeric>

#include "core/base/rng.h"
#include "io/onnx.h"
#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

// Damaged bytes end in a model or in one graft::Error.
namespace graft::testing {
namespace {

/// A model that has a bit of everything.
std::string rich_model() {
  return model_proto(R"(
      ir_version: 10 producer_name: "p" opset_import { version: 21 }
      opset_import { domain: "f" version: 1 } metadata_props { key: "k" value: "v" }
      functions { name: "F" domain: "f" input: "a" output: "b" opset_import { version: 21 }
        node { op_type: "Relu" input: "a" output: "b" } }
      graph { name: "g"
        input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" }
          dim { dim_value: 2 } } } } }
        input { name: "c" type { tensor_type { elem_type: 9 shape { } } } }
        output { name: "y" type { tensor_type { elem_type: 1 } } }
        value_info { name: "h" type { tensor_type { elem_type: 1 } } }
        initializer { name: "w" data_type: 1 dims: 2 dims: 2 float_data: 1 float_data: 2
          float_data: 3 float_data: 4 }
        initializer { name: "h16" data_type: 10 dims: 3 int32_data: 1 int32_data: 2 int32_data: 3 }
        initializer { name: "r" data_type: 7 dims: 1 raw_data: "\001\000\000\000\000\000\000\000" }
        sparse_initializer { dims: 9 values { name: "s" data_type: 1 dims: 1 float_data: 5 }
          indices { data_type: 7 dims: 1 int64_data: 4 } }
        node { op_type: "MatMul" input: "x" input: "w" output: "h" }
        node { op_type: "F" domain: "f" input: "h" output: "h2" }
        node { name: "i" op_type: "If" input: "c" output: "y"
          attribute { name: "then_branch" type: GRAPH g { name: "t" output { name: "t" }
            node { op_type: "Elu" input: "h2" output: "t"
              attribute { name: "alpha" type: FLOAT f: 2 } } } }
          attribute { name: "else_branch" type: GRAPH g { name: "e" output { name: "e" }
            node { op_type: "Constant" output: "e" attribute { name: "value" type: TENSOR
              t { data_type: 1 dims: 1 float_data: 1 } } } } } } })")
      .SerializeAsString();
}

/// True for a model, false for an Error; anything else fails the test.
bool loads(const std::string& bytes) {
  try {
    const Model model = onnx::parse(bytes);
    onnx::serialize(model);
    return true;
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return false;
  }
}

TEST(Damage, TruncationAtEveryByteIsRefused) {
  const std::string bytes = rich_model();
  ASSERT_TRUE(loads(bytes));
  int loaded = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    loaded += loads(bytes.substr(0, size)) ? 1 : 0;
  }
  // Cut behind the imports or behind the metadata, all fields are whole: that is a model.
  EXPECT_EQ(loaded, 2);
}

TEST(Damage, TruncationAndTrailingBytesAreTold) {
  const std::string bytes = rich_model();
  const TempFolder folder;
  const auto refused = [&](const std::string& damaged, std::string_view part) {
    expect_error(ErrorKind::model, part, [&] { onnx::parse(damaged); });
    expect_error(ErrorKind::model, part, [&] { onnx::load(folder.write("m.onnx", damaged)); });
  };
  refused(bytes.substr(0, bytes.size() - 5), "truncated: field ");
  refused(bytes + '\0', "stray bytes after the message");
  refused(bytes + "\x0a\x05" + "ab", "truncated: field 1 at byte " + std::to_string(bytes.size()));
  refused("", "is empty");
  refused("<!DOCTYPE html>", "or another kind of file");
  refused("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "git lfs pointer");
  refused(std::string("\x3a\x02\xff\xff", 4), "malformed within");
}

/// Files are read piece by piece.
TEST(Damage, AFileOfManyPiecesIsReadAsItsBytesAre) {
  constexpr std::int64_t kElements = 100'000;
  Model model;
  model.set_opset("", 21);
  Graph& graph = model.graph();
  const Tensor weights = Tensor::empty(DType::f32, {kElements});
  std::iota(weights.values<float>().begin(), weights.values<float>().end(), 0.0F);
  graph.add_initializer("w", weights);
  graph.add_node("Relu", "", {graph.find("w")}, {"y"});
  graph.add_output(graph.find("y"));
  const std::string bytes = onnx::serialize(model);
  const TempFolder folder;
  const Model loaded = onnx::load(folder.write("m.onnx", bytes));
  EXPECT_EQ(onnx::serialize(loaded), bytes);
  for (const std::size_t size : {bytes.size() / 2, bytes.size() - 1}) {
    expect_error(ErrorKind::model, "truncated: field ",
                 [&] { onnx::load(folder.write("m.onnx", bytes.substr(0, size))); });
  }
}

TEST(Damage, TheSizeLimitHolds) {
  expect_error(ErrorKind::model, "more than the limit of 10",
               [] { onnx::parse(rich_model(), {}, {.max_bytes = 10}); });
  const TempFolder folder;
  const auto path = folder.write("m.onnx", rich_model());
  expect_error(ErrorKind::io, "more than the limit of 10",
               [&] { onnx::load(path, {.max_bytes = 10}); });
}

TEST(Damage, RandomFlipsNeverCrash) {
  const std::string original = rich_model();
  const Philox random(20260101);
  std::uint64_t drawn = 0;
  int loaded = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = original;
    const std::uint64_t flips = 1 + random.below(drawn++, 4);
    for (std::uint64_t i = 0; i < flips; ++i) {
      char& byte = bytes[random.below(drawn++, bytes.size())];
      byte = static_cast<char>(byte ^ static_cast<char>(1U << random.below(drawn++, 8)));
    }
    loaded += loads(bytes) ? 1 : 0;
  }
  // Some flips change only a weight or a name's letter; most are refused.
  EXPECT_GT(loaded, kRounds / 100);
  EXPECT_LT(loaded, kRounds / 2);
}

TEST(Damage, RandomSplicesNeverCrash) {
  const std::string original = rich_model();
  const Philox random(7);
  std::uint64_t drawn = 0;
  int refused = 0;
  constexpr int kRounds = 5000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = original;
    const std::size_t from = random.below(drawn++, bytes.size());
    const std::size_t count = random.below(drawn++, 20);
    const std::size_t to = random.below(drawn++, bytes.size());
    bytes.insert(to, original.substr(from, count));
    if (random.below(drawn++, 2) == 0) bytes.erase(random.below(drawn++, bytes.size()), count);
    refused += loads(bytes) ? 0 : 1;
  }
  EXPECT_GT(refused, kRounds / 2);
}

}  // namespace
}  // namespace graft::testing

#include "io/safetensors.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "tests/core/growth.h"
#include "tests/data/test_files.h"
#include "tests/io/hex.h"

namespace graft::testing {
namespace {

/// Written by safetensors 0.8: l = i64 7, w = f32 [[1.5, -2]], i = i8 [1, 2, 3], format = "np".
const std::string kWritten = from_hex(
    "c8000000000000007b225f5f6d657461646174615f5f223a7b22666f726d6174223a226e70227d2c226c223a7b22"
    "6474797065223a22493634222c227368617065223a5b5d2c22646174615f6f666673657473223a5b302c385d7d2c"
    "2277223a7b226474797065223a22463332222c227368617065223a5b312c325d2c22646174615f6f666673657473"
    "223a5b382c31365d7d2c2269223a7b226474797065223a224938222c227368617065223a5b335d2c22646174615f"
    "6f666673657473223a5b31362c31395d7d7d20202020202007000000000000000000c03f000000c0010203");

safetensors::Content load(const std::string& bytes) {
  const TempFolder folder;
  return safetensors::load(folder.write("a.safetensors", bytes));
}

/// A file with this header and so many bytes behind it.
std::string file_of(const std::string& header, std::size_t bytes) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(bytes, '\1');
}

TEST(Safetensors, ReadsWhatTheReferenceWrites) {
  const safetensors::Content content = load(kWritten);
  ASSERT_EQ(content.tensors.size(), 3U);
  EXPECT_EQ(content.tensors[0].name, "l");
  EXPECT_TRUE(equal_bits(content.tensors[0].tensor, Tensor::scalar<std::int64_t>(7)));
  EXPECT_TRUE(equal_bits(content.tensors[1].tensor, Tensor::from<float>({1, 2}, {1.5F, -2.0F})));
  EXPECT_TRUE(equal_bits(content.tensors[2].tensor, Tensor::from<std::int8_t>({3}, {1, 2, 3})));
  ASSERT_EQ(content.metadata.size(), 1U);
  EXPECT_EQ(content.metadata[0], (std::pair<std::string, std::string>("format", "np")));
}

TEST(Safetensors, WritesTheSameBytes) {
  const TempFolder folder;
  safetensors::save(folder.path() / "b", load(kWritten));
  EXPECT_EQ(read_file(folder.path() / "b", 1000), kWritten);
}

TEST(Safetensors, KeepsEveryTypeAndEmptyTensors) {
  safetensors::Content content;
  for (const DType dtype : {DType::boolean, DType::bf16, DType::f16, DType::f64, DType::u64,
                            DType::i16, DType::f8e5m2, DType::c64}) {
    const Tensor tensor = Tensor::from_bytes(dtype, {1}, std::string(16, '\1').data(),
                                             static_cast<std::size_t>(bits_of(dtype)) / 8);
    content.tensors.push_back({text(dtype), tensor});
  }
  content.tensors.push_back({"none", Tensor::empty(DType::f32, {0, 3})});
  content.metadata = {{"a", "\"quoted\"\n"}, {"b", ""}};
  const TempFolder folder;
  safetensors::save(folder.path() / "c", content);
  const safetensors::Content back = safetensors::load(folder.path() / "c");
  ASSERT_EQ(back.tensors.size(), content.tensors.size());
  for (const NamedTensor& named : content.tensors) {
    const auto at = std::ranges::find(back.tensors, named.name, &NamedTensor::name);
    ASSERT_NE(at, back.tensors.end()) << named.name;
    EXPECT_TRUE(equal_bits(at->tensor, named.tensor)) << named.name;
  }
  EXPECT_EQ(back.metadata, content.metadata);
}

TEST(Safetensors, TimeGrowsWithTheNumberOfTensors) {
  const TempFolder folder;
  const auto saving = [&](int count) {
    safetensors::Content content;
    for (int i = 0; i < count; ++i) {
      content.tensors.push_back({"tensor_" + std::to_string(i), Tensor::zeros(DType::f32, {1})});
    }
    return [&folder, content = std::move(content)] {
      safetensors::save(folder.path() / "many", content);
      EXPECT_EQ(safetensors::load(folder.path() / "many").tensors.size(), content.tensors.size());
    };
  };
  EXPECT_LT(growth(1500, saving), kFarFromProportional);
}

TEST(Safetensors, RefusesWhatItCannotWrite) {
  const TempFolder folder;
  const Tensor one = Tensor::scalar(1.0F);
  const auto save = [&](std::vector<NamedTensor> tensors) {
    safetensors::save(folder.path() / "d", {.tensors = std::move(tensors)});
  };
  expect_error(ErrorKind::argument, "there twice", [&] { save({{"a", one}, {"a", one}}); });
  expect_error(ErrorKind::argument, "is empty", [&] { save({{"", one}}); });
  expect_error(ErrorKind::argument, "__metadata__", [&] { save({{"__metadata__", one}}); });
  expect_error(ErrorKind::argument, "UTF-8", [&] { save({{"\xff", one}}); });
  expect_error(ErrorKind::type, "no element type", [&] {
    save({{"s", Tensor::from_strings({1}, {"x"})}});
  });
  expect_error(ErrorKind::argument, "'k' is there twice", [&] {
    safetensors::save(folder.path() / "d", {.metadata = {{"k", "1"}, {"k", "2"}}});
  });
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "d"));
}

TEST(Safetensors, EveryTruncationIsAnError) {
  for (std::size_t size = 0; size < kWritten.size(); ++size) {
    expect_error(ErrorKind::io, "cannot load", [&] { load(kWritten.substr(0, size)); });
  }
  expect_error(ErrorKind::io, "something follows", [] { load(kWritten + "x"); });
}

/// A flipped byte may leave another valid file; it must never do worse than throw an Error.
TEST(Safetensors, EveryFlippedBitEndsInAFileOrAnError) {
  int refused = 0;
  for (std::size_t i = 0; i < kWritten.size() * 8; ++i) {
    std::string bytes = kWritten;
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << (i % 8)));
    try {
      load(bytes);
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 800);
}

TEST(Safetensors, RefusesHeadersThatContradictThemselves) {
  const auto entry = [](const std::string& name, const std::string& rest) {
    return "\"" + name + R"(":{"dtype":"F32",)" + rest + "}";
  };
  const std::string four = R"("shape":[1],"data_offsets":[0,4])";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"[]", "no object"},
      {"{", "the header"},
      {"{" + entry("a", four) + "," + entry("a", four) + "}", "there twice"},
      {"{" + entry("a", R"("shape":[2],"data_offsets":[0,4])") + "}", "needs 8 bytes"},
      {"{" + entry("a", R"("shape":[-1],"data_offsets":[0,4])") + "}", "wanted a whole number"},
      {"{" + entry("a", R"("shape":[1.0],"data_offsets":[0,4])") + "}", "wanted a whole number"},
      {"{" + entry("a", R"("shape":[1],"data_offsets":[4,0])") + "}", "its place is 4 to 0"},
      {"{" + entry("a", R"("shape":[1],"data_offsets":[0])") + "}", "two data_offsets"},
      {"{" + entry("a", four) + "," + entry("b", four) + "}", "where the one before ends"},
      {"{" + entry("a", R"("shape":[1],"data_offsets":[4,8])") + "}", "wanted 0"},
      {"{" + entry("a", R"("shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4])") + "}",
       "cannot load"},
      {R"({"a":{"dtype":"F5","shape":[1],"data_offsets":[0,4]}})", "type 'F5'"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", "has no dtype"},
      {R"({"a":3})", "no object"},
      {R"({"__metadata__":{"k":1}})", "is no text"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", "'k' is there twice"}};
  for (const auto& [header, part] : cases) {
    try {
      load(file_of(header, 4));
      ADD_FAILURE() << header;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(Safetensors, RefusesListsThatAreNestedAMillionTimes) {
  constexpr std::size_t kMany = 1'000'000;
  const std::string lists = std::string(kMany, '[') + std::string(kMany, ']');
  const std::string header =
      R"({"a":{"dtype":"F32","shape":[)" + lists + R"(],"data_offsets":[0,4]}})";
  expect_error(ErrorKind::io, "lists in lists", [&] { load(file_of(header, 4)); });
}

TEST(Safetensors, AHeaderOfTerabytesIsRefusedBeforeItIsRead) {
  std::string bytes = kWritten;
  bytes[6] = '\1';
  expect_error(ErrorKind::io, "the header needs", [&] { load(bytes); });
}

}  // namespace
}  // namespace graft::testing

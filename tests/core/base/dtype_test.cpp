#include "core/base/dtype.h"

#include <gtest/gtest.h>

#include <limits>

namespace graft {
namespace {

TEST(DType, HasTheNumbersOfOnnx) {
  // TensorProto.DataType, onnx.proto.
  EXPECT_EQ(static_cast<int>(DType::f32), 1);
  EXPECT_EQ(static_cast<int>(DType::i64), 7);
  EXPECT_EQ(static_cast<int>(DType::f16), 10);
  EXPECT_EQ(static_cast<int>(DType::bf16), 16);
  EXPECT_EQ(static_cast<int>(DType::i4), 22);
  EXPECT_EQ(static_cast<int>(DType::i2), 26);
}

TEST(DType, KnowsTheNumbersThatOnnxDefines) {
  EXPECT_FALSE(is_known_dtype(-1));
  EXPECT_FALSE(is_known_dtype(0));
  EXPECT_TRUE(is_known_dtype(1));
  EXPECT_TRUE(is_known_dtype(28));
  EXPECT_FALSE(is_known_dtype(29));
}

TEST(DType, NamesAndBitsBelongToTheRightType) {
  EXPECT_EQ(text(DType::boolean), "bool");
  EXPECT_EQ(name(DType::f8e4m3fnuz), "f8e4m3fnuz");
  EXPECT_EQ(name(DType::i2), "i2");
  EXPECT_EQ(bits_of(DType::c128), 128);
  EXPECT_EQ(bits_of(DType::f4e2m1), 4);
  EXPECT_EQ(bits_of(DType::string), 0);
}

TEST(DType, BytesArePackedAndRoundedUp) {
  EXPECT_EQ(bytes_of(DType::f32, 3), 12U);
  EXPECT_EQ(bytes_of(DType::i4, 3), 2U);
  EXPECT_EQ(bytes_of(DType::u2, 5), 2U);
  EXPECT_EQ(bytes_of(DType::f64, 0), 0U);
}

TEST(DType, BytesRefuseToOverflow) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(bytes_of(DType::u8, most), Error);
  EXPECT_THROW(bytes_of(DType::f64, most / 8), Error);
  EXPECT_THROW(bytes_of(DType::f32, -1), Error);
  EXPECT_EQ(bytes_of(DType::u8, std::int64_t{1} << 40), std::size_t{1} << 40);
}

TEST(DType, Classes) {
  EXPECT_TRUE(is_float(DType::bf16));
  EXPECT_FALSE(is_float(DType::f8e5m2));
  EXPECT_TRUE(is_integer(DType::u64));
  EXPECT_FALSE(is_integer(DType::boolean));
  EXPECT_FALSE(is_integer(DType::i4));
}

TEST(DType, VisitCallsOnceWithTheMatchingType) {
  int calls = 0;
  std::size_t size = 0;
  EXPECT_TRUE(visit_dtype(AllTypes{}, DType::i16, [&]<class T>() {
    ++calls;
    size = sizeof(T);
  }));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(size, 2U);
  EXPECT_FALSE(visit_dtype(FloatTypes{}, DType::i16, [&]<class T>() { ++calls; }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace graft

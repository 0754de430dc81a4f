#include "io/proto/tensor_proto.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

using onnx::check_tensor;
using onnx::ExternalReader;
using onnx::put_tensor;
using onnx::take_tensor;

const ExternalReader kNowhere{{}};

/// Reads the tensor and expects that writing it gives the message back.
Tensor read(const std::string& fields) {
  const pb::TensorProto original = tensor_proto(fields);
  pb::TensorProto proto = original;
  check_tensor(proto, "t", kNowhere);
  const Tensor tensor = take_tensor(proto, "t", kNowhere);
  put_tensor(tensor, proto);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(original, proto))
      << proto.ShortDebugString();
  return tensor;
}

/// The tensor's bytes as numbers.
std::vector<int> raw(const Tensor& tensor) {
  const auto* const data = static_cast<const unsigned char*>(tensor.data());
  return {data, data + tensor.bytes()};
}

using Bytes = std::vector<int>;

TEST(TensorProto, TypedFieldsOfWholeWidth) {
  EXPECT_TRUE(equal_bits(read("data_type: 1 dims: 2 float_data: 1.5 float_data: -0.0"),
                         Tensor::from<float>({2}, {1.5F, -0.0F})));
  EXPECT_TRUE(
      equal_bits(read("data_type: 11 dims: 1 double_data: 0.1"), Tensor::from<double>({1}, {0.1})));
  EXPECT_TRUE(equal_bits(read("data_type: 7 int64_data: -5"), Tensor::scalar<std::int64_t>(-5)));
  EXPECT_TRUE(equal_bits(read("data_type: 6 dims: 1 int32_data: -5"),
                         Tensor::from<std::int32_t>({1}, {-5})));
  EXPECT_TRUE(equal_bits(read("data_type: 13 dims: 1 uint64_data: 18446744073709551615"),
                         Tensor::from<std::uint64_t>({1}, {~std::uint64_t{0}})));
  EXPECT_TRUE(equal_bits(read("data_type: 12 dims: 1 uint64_data: 4294967295"),
                         Tensor::from<std::uint32_t>({1}, {~std::uint32_t{0}})));
}

TEST(TensorProto, Int32DataHoldsSmallTypes) {
  EXPECT_EQ(raw(read("data_type: 2 dims: 2 int32_data: 0 int32_data: 255")), (Bytes{0, 255}));
  EXPECT_EQ(raw(read("data_type: 3 dims: 2 int32_data: -128 int32_data: 127")), (Bytes{128, 127}));
  EXPECT_EQ(raw(read("data_type: 4 dims: 1 int32_data: 65534")), (Bytes{254, 255}));
  EXPECT_EQ(raw(read("data_type: 5 dims: 1 int32_data: -2")), (Bytes{254, 255}));
  EXPECT_EQ(raw(read("data_type: 9 dims: 2 int32_data: 1 int32_data: 0")), (Bytes{1, 0}));
  EXPECT_EQ(raw(read("data_type: 10 dims: 1 int32_data: 15360")), (Bytes{0, 0x3c}));     // 1.0
  EXPECT_EQ(raw(read("data_type: 16 dims: 1 int32_data: 49024")), (Bytes{0x80, 0xbf}));  // -1.0
  for (const int float8 : {17, 18, 19, 20, 24}) {
    EXPECT_EQ(raw(read("data_type: " + std::to_string(float8) + " dims: 1 int32_data: 200")),
              (Bytes{200}));
  }
}

TEST(TensorProto, PackedTypes) {
  for (const int four_bits : {21, 22, 23}) {
    const std::string type = "data_type: " + std::to_string(four_bits);
    // Three elements, two a byte: 1, 2, 15.
    EXPECT_EQ(raw(read(type + " dims: 3 int32_data: 33 int32_data: 15")), (Bytes{0x21, 0x0f}));
    EXPECT_EQ(raw(read(type + " dims: 3 raw_data: '\\041\\017'")), (Bytes{0x21, 0x0f}));
  }
  for (const int two_bits : {25, 26}) {
    const std::string type = "data_type: " + std::to_string(two_bits);
    EXPECT_EQ(raw(read(type + " dims: 5 int32_data: 228 int32_data: 2")), (Bytes{228, 2}));
    EXPECT_EQ(raw(read(type + " dims: 5 raw_data: '\\344\\002'")), (Bytes{228, 2}));
  }
  for (const int six_bits : {27, 28}) {
    const std::string type = "data_type: " + std::to_string(six_bits);
    // 63, 0, 33, 1 and 62: bits 111111 000000 100001 100000 011111, lowest first.
    EXPECT_EQ(raw(read(type + " dims: 5 int32_data: 63 int32_data: 0 int32_data: 33 int32_data: 1 "
                              "int32_data: 62")),
              (Bytes{0x3f, 0x10, 0x06, 0x3e}));
    EXPECT_EQ(raw(read(type + " dims: 5 raw_data: '\\077\\020\\006\\076'")),
              (Bytes{0x3f, 0x10, 0x06, 0x3e}));
  }
}

TEST(TensorProto, ComplexNumbersTakeTwoEntries) {
  EXPECT_EQ(read("data_type: 14 dims: 1 float_data: 1 float_data: 2").bytes(), 8U);
  EXPECT_EQ(read("data_type: 15 dims: 1 double_data: 1 double_data: 2").bytes(), 16U);
  expect_error(ErrorKind::model, "needs 2 entries",
               [] { read("data_type: 14 dims: 1 float_data: 1"); });
}

TEST(TensorProto, Strings) {
  const Tensor tensor = read("data_type: 8 dims: 2 string_data: 'a' string_data: '\\000\\377'");
  EXPECT_EQ(tensor.strings(), (std::vector<std::string>{"a", std::string("\0\xff", 2)}));
}

TEST(TensorProto, BoolBytesAreZeroOrOne) {
  pb::TensorProto proto = tensor_proto("data_type: 9 dims: 3 raw_data: '\\000\\001\\177'");
  EXPECT_EQ(raw(take_tensor(proto, "t", kNowhere)), (Bytes{0, 1, 1}));
}

TEST(TensorProto, SmallNumbersMayBeExtendedBySignOrZeros) {
  pb::TensorProto proto = tensor_proto("data_type: 10 dims: 1 int32_data: -17408");
  EXPECT_EQ(raw(take_tensor(proto, "t", kNowhere)), (Bytes{0, 0xbc}));
  proto = tensor_proto("data_type: 3 dims: 1 int32_data: 200");
  EXPECT_EQ(raw(take_tensor(proto, "t", kNowhere)), (Bytes{200}));
}

TEST(TensorProto, EntriesOutOfRangeAreRefused) {
  for (const char* const fields :
       {"data_type: 2 dims: 1 int32_data: 256", "data_type: 3 dims: 1 int32_data: -129",
        "data_type: 10 dims: 1 int32_data: 65536", "data_type: 21 dims: 1 int32_data: 256",
        "data_type: 12 dims: 1 uint64_data: 4294967296",
        "data_type: 12 dims: 1 uint64_data: 18446744073709551615",
        "data_type: 27 dims: 1 int32_data: 64", "data_type: 27 dims: 1 int32_data: -1"}) {
    SCOPED_TRACE(fields);
    expect_error(ErrorKind::model, "does not fit", [&] { read(fields); });
  }
}

}  // namespace
}  // namespace graft::testing

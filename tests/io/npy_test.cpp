#include "io/npy.h"

#include <gtest/gtest.h>

#include "tests/data/test_files.h"
#include "tests/io/hex.h"

namespace graft::testing {
namespace {

// Written by NumPy 2.4.

/// f32 [[1,2,3],[4,5,6]], C order, format 1.
const std::string kC = from_hex(
    "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a20"
    "46616c73652c20277368617065273a2028322c2033292c207d20202020202020202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020200a0000803f"
    "0000004000004040000080400000a0400000c040");
/// The same in Fortran order.
const std::string kFortran = from_hex(
    "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a20"
    "547275652c20277368617065273a2028322c2033292c207d2020202020202020202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020200a0000803f"
    "00008040000000400000a040000040400000c040");
/// bool [True, False], format 2.
const std::string kVersion2 = from_hex(
    "934e554d50590200740000007b276465736372273a20277c6231272c2027666f727472616e5f6f7264657227"
    "3a2046616c73652c20277368617065273a2028322c292c207d20202020202020202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020200a0100");
/// i64 scalar 7, format 3.
const std::string kVersion3 = from_hex(
    "934e554d50590300740000007b276465736372273a20273c6938272c2027666f727472616e5f6f7264657227"
    "3a2046616c73652c20277368617065273a2028292c207d202020202020202020202020202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020200a07000000"
    "00000000");

/// A file of format 1 with this header.
std::string file(const std::string& header, const std::string& data = "") {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xff) +
         static_cast<char>(header.size() >> 8) + header + data;
}

const std::string kHeader = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";

TEST(Npy, ReadsWhatNumPyWrites) {
  const Tensor expected = Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(equal_bits(npy::parse(kC), expected));
  EXPECT_TRUE(equal_bits(npy::parse(kFortran), expected));
  EXPECT_TRUE(equal_bits(npy::parse(kVersion2), Tensor::from<bool>({2}, {true, false})));
  EXPECT_TRUE(equal_bits(npy::parse(kVersion3), Tensor::scalar<std::int64_t>(7)));
}

TEST(Npy, WritesWhatNumPyWrites) {
  EXPECT_EQ(npy::serialize(Tensor::from<float>({2, 3}, {1, 2, 3, 4, 5, 6})), kC);
}

TEST(Npy, FortranOrderOfThreeAxes) {
  // Element (i,j,k) of shape [2,2,2] lies at i + 2j + 4k.
  const std::string data("\0\1\2\3\4\5\6\7", 8);
  const Tensor tensor =
      npy::parse(file("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 2), }", data));
  EXPECT_TRUE(equal_bits(tensor, Tensor::from<std::uint8_t>({2, 2, 2}, {0, 4, 2, 6, 1, 5, 3, 7})));
}

TEST(Npy, EveryTypeSurvives) {
  for (const DType dtype :
       {DType::boolean, DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
        DType::u32, DType::u64, DType::f16, DType::f32, DType::f64}) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{3}, Shape{2, 0, 2}, Shape{2, 1, 3}}) {
      const Tensor tensor = Tensor::full(dtype, shape, 1);
      const std::string bytes = npy::serialize(tensor);
      EXPECT_TRUE(equal_bits(npy::parse(bytes), tensor)) << tensor;
      EXPECT_EQ((bytes.size() - tensor.bytes()) % 64, 0U);
    }
  }
  const Tensor complex = Tensor::from_bytes(DType::c64, {1}, "abcdefgh", 8);
  EXPECT_TRUE(equal_bits(npy::parse(npy::serialize(complex)), complex));
  expect_error(ErrorKind::type, "no element type for bf16",
               [] { npy::serialize(Tensor::zeros(DType::bf16, {1})); });
  expect_error(ErrorKind::type, "no element type for string",
               [] { npy::serialize(Tensor::from_strings({1}, {"a"})); });
}

TEST(Npy, HeadersMayBeWrittenInOtherWays) {
  EXPECT_EQ(
      npy::parse(file("{\"shape\":(1L,),\"descr\":\"=f4\",\"fortran_order\":False}\n", "abcd"))
          .bytes(),
      4U);
  EXPECT_EQ(npy::parse(file("{'descr': '>i1', 'fortran_order': True, 'shape': (2,)}", "ab")).size(),
            2);
}

TEST(Npy, DamageIsRefused) {
  const auto refused = [](const std::string& bytes, std::string_view part,
                          ErrorKind kind = ErrorKind::io) {
    SCOPED_TRACE(bytes);
    expect_error(kind, part, [&] { npy::parse(bytes); });
  };
  const auto header = [&](const std::string& dict, std::string_view part,
                          ErrorKind kind = ErrorKind::io) { refused(file(dict), part, kind); };
  for (std::size_t size = 0; size < kC.size(); ++size) {
    EXPECT_THROW(npy::parse(kC.substr(0, size)), Error) << size;
  }
  refused("PK", "does not start as one");
  refused(kC + "x", "needs 24 bytes, found 25");
  refused(std::string("\x93NUMPY\x04\x00\x00\x00", 10), "format version 4", ErrorKind::unsupported);
  refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "the header needs 4294967295");
  header("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "'>f4'",
         ErrorKind::unsupported);
  header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "'|O'",
         ErrorKind::unsupported);
  header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "structured",
         ErrorKind::unsupported);
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "malformed");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (1 2), }", "malformed");
  header("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", "malformed");
  header("{'descr': '<f4', 'shape': (1,), }", "lacks descr");
  header("{'descr': '<f4', 'color': 'red', }", "unknown key 'color'");
  header("{'descr': '<f4", "malformed");
  header(kHeader + "x", "malformed");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "overflows");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
         "malformed");
  header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",
         "needs 4000000000000 bytes, found 0");
}

TEST(Npy, Files) {
  const TempFolder folder;
  const auto path = folder.path() / "a.npy";
  npy::save(path, Tensor::from<float>({1}, {5}));
  EXPECT_TRUE(equal_bits(npy::load(path), Tensor::from<float>({1}, {5})));
  expect_error(ErrorKind::io, "bad.npy': npy: ", [&] { npy::load(folder.write("bad.npy", "x")); });
}

}  // namespace
}  // namespace graft::testing

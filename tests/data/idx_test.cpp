#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::bytes;
using ::testing::ElementsAre;
using testing::expect_error;
using testing::gzip;
using testing::idx;
using testing::TempFolder;

Tensor read(std::string_view content) {
  const TempFolder folder;
  return read_idx(folder.write("numbers-idx", content));
}

TEST(ReadIdx, ReadsBytesPlainAndGzip) {
  const std::string content = idx(0x08, {2, 3}, bytes({0, 1, 2, 127, 128, 255}));
  for (const std::string& file : {content, gzip(content)}) {
    const Tensor result = read(file);
    EXPECT_EQ(result.shape(), (Shape{2, 3}));
    EXPECT_THAT(result.values<std::uint8_t>(), ElementsAre(0, 1, 2, 127, 128, 255));
  }
}

TEST(ReadIdx, ReadsEveryElementType) {
  EXPECT_THAT(read(idx(0x09, {2}, bytes({0xFF, 0x7F}))).values<std::int8_t>(),
              ElementsAre(-1, 127));
  EXPECT_THAT(read(idx(0x0B, {2}, bytes({0x01, 0x02, 0xFF, 0xFE}))).values<std::int16_t>(),
              ElementsAre(258, -2));
  EXPECT_THAT(read(idx(0x0C, {1}, bytes({0x01, 0x02, 0x03, 0x04}))).values<std::int32_t>(),
              ElementsAre(16909060));
  EXPECT_THAT(read(idx(0x0D, {1}, bytes({0xC0, 0x20, 0x00, 0x00}))).values<float>(),
              ElementsAre(-2.5F));
  EXPECT_THAT(read(idx(0x0E, {1}, bytes({0x3F, 0xF8, 0, 0, 0, 0, 0, 0}))).values<double>(),
              ElementsAre(1.5));
}

TEST(ReadIdx, ReadsNoElements) {
  EXPECT_EQ(read(idx(0x08, {0, 4}, "")).shape(), (Shape{0, 4}));
}

TEST(ReadIdx, RefusesAWrongMagic) {
  expect_error(ErrorKind::io, "not an idx file: starts with bytes 80 75 3 4",
               [] { read("PK\x03\x04"); });
  expect_error(ErrorKind::io, "wanted 0 0 TYPE RANK", [] { read(bytes({0, 0, 8, 0})); });
  expect_error(ErrorKind::io, "element type 10 is unknown",
               [] { read(idx(0x0A, {1}, bytes({1}))); });
}

TEST(ReadIdx, RefusesACutOffHeader) {
  expect_error(ErrorKind::io, "wanted 4 more bytes, found 2", [] { read(bytes({0, 0})); });
  expect_error(ErrorKind::io, "wanted 8 more bytes, found 4", [] {
    read(bytes({0, 0, 8, 2, 0, 0, 0, 1}));
  });
  expect_error(ErrorKind::io, "wanted 1020 more bytes, found 0", [] {
    read(bytes({0, 0, 8, 255}));
  });
}

TEST(ReadIdx, RefusesDimsThatDoNotFitTheFile) {
  expect_error(ErrorKind::io, "declares u8[2,3], but 5 bytes follow", [] {
    read(idx(0x08, {2, 3}, "12345"));
  });
  expect_error(ErrorKind::io, "declares u8[2,3], but 7 bytes follow", [] {
    read(idx(0x08, {2, 3}, "1234567"));
  });
  expect_error(ErrorKind::io, "declares i32[1], but 1 bytes follow",
               [] { read(gzip(idx(0x0C, {1}, "1"))); });
  expect_error(ErrorKind::io, "declares f64[4294967295,4294967295,4294967295], but 8 bytes follow",
               [] {
                 read(idx(0x0E, {~0U, ~0U, ~0U}, "12345678"));
               });
  // 2^32 * 2^32 is 0 in 64 bits.
  expect_error(ErrorKind::io, "but 0 bytes follow", [] {
    read(idx(0x08, {1U << 31, 1U << 31, 4}, ""));
  });
}

}  // namespace
}  // namespace graft

#include "data/gzip.h"

#include <gtest/gtest.h>

#include "tests/core/other_limits.h"
#include "tests/data/test_files.h"

namespace graft {
namespace {

using testing::expect_error;
using testing::gzip;
using testing::OtherLimits;
using testing::TempFolder;

TEST(DataFile, ReadsPlainAndGzipAlike) {
  const TempFolder folder;
  EXPECT_EQ(read_text(folder.write("plain", "hello")), "hello");
  EXPECT_EQ(read_text(folder.write("packed", gzip("hello"))), "hello");
  EXPECT_EQ(read_text(folder.write("empty", "")), "");
  EXPECT_EQ(read_text(folder.write("packed_empty", gzip(""))), "");
}

TEST(DataFile, GivesItsInflatedSizeAndPiecesInOrder) {
  const TempFolder folder;
  DataFile file(folder.write("packed.gz", gzip("abcde")));
  EXPECT_EQ(file.size(), 5);
  std::string text(3, ' ');
  file.read(text.data(), 3);
  EXPECT_EQ(text, "abc");
  expect_error(ErrorKind::io, "wanted 3 more bytes, found 2", [&] { file.read(text.data(), 3); });
}

TEST(DataFile, WhatItUnpacksToHasALimit) {
  const TempFolder folder;
  const auto path = folder.write("packed.gz", gzip(std::string(1000, 'x')));
  const OtherLimits enough({.inflated_bytes = 1000, .inflated_share = 0});
  EXPECT_EQ(read_text(path).size(), 1000U);
  const OtherLimits few({.inflated_bytes = 999, .inflated_share = 0});
  expect_error(ErrorKind::io,
               "unpacks to 1000; the limit is 999; --allow inflated=NUMBER raises it",
               [&] { read_text(path); });
}

TEST(DataFile, RefusesWhatIsNoRegularFile) {
  const TempFolder folder;
  expect_error(ErrorKind::io, "no such file", [&] { DataFile(folder.path() / "absent"); });
  expect_error(ErrorKind::io, "not a regular file", [&] { DataFile(folder.path()); });
}

TEST(DataFile, RefusesEveryCutOffGzip) {
  const TempFolder folder;
  const std::string whole = gzip(std::string(100, 'x'));
  for (std::size_t size = 2; size < whole.size(); ++size) {
    const auto path = folder.write("cut.gz", whole.substr(0, size));
    EXPECT_THROW(read_text(path), Error) << size << " of " << whole.size() << " bytes";
  }
}

TEST(DataFile, RefusesDamagedGzip) {
  const TempFolder folder;
  std::string damaged = gzip("hello");
  damaged[15] = 'j';  // the first byte of the content, so that the checksum is wrong
  expect_error(ErrorKind::io, "damaged or cut off: incorrect data check",
               [&] { read_text(folder.write("damaged.gz", damaged)); });
}

TEST(DataFile, RefusesContentThatItsTrailerDoesNotDeclare) {
  const TempFolder folder;
  std::string more = gzip("hello");
  more[more.size() - 4] = 3;
  expect_error(ErrorKind::io, "damaged or cut off: incorrect length check",
               [&] { read_text(folder.write("more.gz", more)); });
  // Two gzip files in one inflate to both contents; the trailer counts the last one's only.
  expect_error(ErrorKind::io, "goes on after the 3 bytes it declares",
               [&] { read_text(folder.write("two.gz", gzip("hello") + gzip("abc"))); });
}

TEST(DataFile, RefusesATrailerThatNoDeflateCanReach) {
  const TempFolder folder;
  std::string forged = gzip("hello");
  forged[forged.size() - 1] = 0x7f;
  // 0x7f000005 bytes out of 28 are not possible; nothing is allocated for them.
  expect_error(ErrorKind::io, "declares 2130706437, at most 28896 are possible",
               [&] { read_text(folder.write("forged.gz", forged)); });
}

TEST(PlainOrGzip, PrefersPlainThenGzip) {
  const TempFolder folder;
  const auto plain = folder.path() / "a";
  expect_error(ErrorKind::io, "no such file, nor with .gz", [&] { plain_or_gzip(plain); });
  const auto packed = folder.write("a.gz", "");
  EXPECT_EQ(plain_or_gzip(plain), packed);
  folder.write("a", "");
  EXPECT_EQ(plain_or_gzip(plain), plain);
}

}  // namespace
}  // namespace graft

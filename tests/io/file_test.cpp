#include "io/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/data/test_files.h"

namespace graft::testing {
namespace {

std::string content(const std::filesystem::path& path) {
  return read_file(path, 1000);
}

std::size_t entries_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(File, ReadsRangesAndRefusesOthers) {
  const TempFolder folder;
  const File file = File::open(folder.write("f", "abcdef"));
  EXPECT_EQ(file.size(), 6U);
  char two[2];
  file.read(4, two, 2);
  EXPECT_EQ(std::string(two, 2), "ef");
  expect_error(ErrorKind::io, "has 6 bytes", [&] { file.read(5, two, 2); });
  expect_error(ErrorKind::io, "has 6 bytes", [&] { file.read(~std::uint64_t{0}, two, 2); });
}

TEST(File, RefusesWhatIsNoFile) {
  const TempFolder folder;
  expect_error(ErrorKind::io, "No such file", [&] { File::open(folder.path() / "none"); });
  expect_error(ErrorKind::io, "is a folder", [&] { File::open(folder.path()); });
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorKind::io, "is no file", [&] { File::open(pipe); });
}

TEST(File, SizeLimitComesBeforeReading) {
  const TempFolder folder;
  const auto path = folder.write("f", "abcdef");
  EXPECT_EQ(read_file(path, 6), "abcdef");
  expect_error(ErrorKind::io, "more than the limit of 5", [&] { read_file(path, 5); });
}

TEST(File, OpenBeneathStaysInTheFolder) {
  const TempFolder folder;
  const auto inside = folder.path() / "models";
  std::filesystem::create_directories(inside / "sub");
  folder.write("secret", "s");
  folder.write("models/sub/data", "d");
  EXPECT_EQ(File::open_beneath(inside, "sub/data").size(), 1U);
  EXPECT_EQ(File::open_beneath(inside, "./sub//data").size(), 1U);
  expect_error(ErrorKind::io, "leaves", [&] { File::open_beneath(inside, "../secret"); });
  expect_error(ErrorKind::io, "leaves", [&] { File::open_beneath(inside, "sub/../../secret"); });
  expect_error(ErrorKind::io, "must be relative",
               [&] { File::open_beneath(inside, (folder.path() / "secret").string()); });
  expect_error(ErrorKind::io, "must be relative", [&] { File::open_beneath(inside, ""); });
  expect_error(ErrorKind::io, "names no file", [&] { File::open_beneath(inside, "."); });
  expect_error(ErrorKind::io, "zero byte",
               [&] { File::open_beneath(inside, std::string_view("a\0b", 3)); });
  expect_error(ErrorKind::io, "is a folder", [&] { File::open_beneath(inside, "sub"); });
}

TEST(File, OpenBeneathFollowsNoLink) {
  const TempFolder folder;
  const auto inside = folder.path() / "models";
  std::filesystem::create_directories(inside);
  const auto secret = folder.write("secret", "s");
  std::filesystem::create_symlink(secret, inside / "link");
  std::filesystem::create_directory_symlink(folder.path(), inside / "up");
  std::filesystem::create_hard_link(secret, inside / "hard");
  expect_error(ErrorKind::io, "links are not followed",
               [&] { File::open_beneath(inside, "link"); });
  expect_error(ErrorKind::io, "links are not followed",
               [&] { File::open_beneath(inside, "up/secret"); });
  expect_error(ErrorKind::io, "second hard link", [&] { File::open_beneath(inside, "hard"); });
}

TEST(AtomicFile, AppearsOnlyOnCommit) {
  const TempFolder folder;
  const auto path = folder.write("out", "old");
  {
    AtomicFile file(path);
    file.write("new content");
    EXPECT_EQ(content(path), "old");
    EXPECT_EQ(entries_in(folder.path()), 2U);
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(entries_in(folder.path()), 1U);
  AtomicFile file(path);
  file.write("new");
  file.commit();
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(entries_in(folder.path()), 1U);
}

TEST(AtomicFile, KeepsTheModeAndFollowsALink) {
  const TempFolder folder;
  const auto target = folder.write("target", "old");
  std::filesystem::permissions(target, std::filesystem::perms(0640));
  std::filesystem::create_symlink("target", folder.path() / "link");
  write_file(folder.path() / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
  EXPECT_EQ(content(target), "new");
  EXPECT_EQ(std::filesystem::status(target).permissions(), std::filesystem::perms(0640));
}

TEST(AtomicFile, WritesWhereALinkToNothingPoints) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "inner");
  std::filesystem::create_symlink("inner/link", folder.path() / "link");
  std::filesystem::create_symlink("target", folder.path() / "inner" / "link");
  write_file(folder.path() / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
  EXPECT_EQ(content(folder.path() / "inner" / "target"), "new");
}

TEST(AtomicFile, RefusesWhatCannotBeReplaced) {
  const TempFolder folder;
  expect_error(ErrorKind::io, "No such file or directory",
               [&] { AtomicFile(folder.path() / "none" / "out"); });
  expect_error(ErrorKind::io, "no regular file", [&] { AtomicFile(folder.path()); });
  expect_error(ErrorKind::io, "no regular file", [&] { AtomicFile("/dev/null"); });
  expect_error(ErrorKind::io, "names no file", [&] { AtomicFile(folder.path() / ""); });
}

/// Both would be found by the rename, when the work is done, or replaced.
TEST(AtomicFile, RefusesNamesThatNoFileCanHave) {
  const TempFolder folder;
  expect_error(ErrorKind::io, "File name too long",
               [&] { AtomicFile(folder.path() / std::string(256, 'a')); });
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  expect_error(ErrorKind::io, "Too many levels of symbolic links",
               [&] { AtomicFile(folder.path() / "loop"); });
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "loop"));
}

TEST(AtomicFile, ReservesWhatTheDiskHas) {
  const TempFolder folder;
  AtomicFile file(folder.path() / "file");
  file.reserve(1 << 20);
  file.write("content");
  EXPECT_THROW(file.reserve(std::uint64_t{1} << 60), Error);
  file.commit();
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "file"), 7U);
}

TEST(LinkFile, GivesASecondNameInPlaceOfAnOlderFile) {
  const TempFolder folder;
  const std::filesystem::path from = folder.write("new", "new content");
  const std::filesystem::path path = folder.write("old", "old content");
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(link_file(from, path));
    EXPECT_EQ(content(path), "new content");
    EXPECT_TRUE(std::filesystem::equivalent(from, path));
    EXPECT_EQ(entries_in(folder.path()), 2U) << "no temporary name is left";
  }
  write_file(from, "newer");
  EXPECT_EQ(content(path), "new content") << "a new file took the first name";
  expect_error(ErrorKind::io, "cannot write",
               [&] { link_file(folder.path() / "none", folder.path() / "x"); });
  expect_error(ErrorKind::io, "cannot write", [&] { link_file(from, folder.path() / "no" / "x"); });
}

TEST(MakeFolder, MakesThoseAboveToo) {
  const TempFolder folder;
  make_folder(folder.path() / "a" / "b");
  make_folder(folder.path() / "a" / "b");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a" / "b"));
  folder.write("file", "");
  expect_error(ErrorKind::io, "cannot make folder", [&] { make_folder(folder.path() / "file"); });
}

TEST(AtomicFile, RefusesAProtectedFile) {
  const TempFolder folder;
  const auto path = folder.write("fixed", "old");
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  if (::geteuid() == 0) GTEST_SKIP() << "the superuser may write everywhere";
  expect_error(ErrorKind::io, "Permission denied", [&] { AtomicFile file(path); });
}

}  // namespace
}  // namespace graft::testing

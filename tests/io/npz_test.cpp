#include "io/npz.h"

#include <gtest/gtest.h>

#include "core/base/rng.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/zip.h"
#include "tests/core/other_limits.h"
#include "tests/data/test_files.h"
#include "tests/io/hex.h"

namespace graft::testing {
namespace {

// Written by NumPy 2.4.

/// savez(a=i16[1, 2], b=f64[0.5])
const std::string kStored = from_hex(
    "504b03042d0000000000000021009d32853affffffffffffffff05001400612e6e7079010010008400000000"
    "0000008400000000000000934e554d5059010076007b276465736372273a20273c6932272c2027666f727472"
    "616e5f6f72646572273a2046616c73652c20277368617065273a2028322c292c207d20202020202020202020"
    "2020202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "2020202020200a01000200504b03042d000000000000002100eac5199dffffffffffffffff05001400622e6e"
    "70790100100088000000000000008800000000000000934e554d5059010076007b276465736372273a20273c"
    "6638272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028312c292c20"
    "7d20202020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020200a000000000000e03f504b01022d032d0000000000000021009d32"
    "853a8400000084000000050000000000000000000000800100000000612e6e7079504b01022d032d00000000"
    "0000002100eac5199d88000000880000000500000000000000000000008001bb000000622e6e7079504b0506"
    "0000000002000200660000007a0100000000");
/// savez_compressed(z=f32 zeros of shape (4, 5))
const std::string kDeflated = from_hex(
    "504b03042d000000080000002100fbe58534ffffffffffffffff050014007a2e6e707901001000d000000000"
    "00000049000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f5452"
    "9498179f5f94920a12774bcc294e058a17672416a402f91a263a0aa69a3a0ab50a64032e062a0300504b0102"
    "2d032d000000080000002100fbe5853449000000d00000000500000000000000000000008001000000007a2e"
    "6e7079504b0506000000000100010033000000800000000000");

std::vector<NamedTensor> load(const std::string& bytes) {
  const TempFolder folder;
  return npz::load(folder.write("a.npz", bytes));
}

/// Writes `value` of `size` bytes, lowest first, at `at`.
std::string patched(std::string bytes, std::size_t at, std::size_t size, std::uint64_t value) {
  for (std::size_t i = 0; i < size; ++i) bytes.at(at + i) = static_cast<char>(value >> (8 * i));
  return bytes;
}

/// Where the last directory entry of the archive starts.
std::size_t last_entry(const std::string& bytes) {
  return bytes.rfind("PK\1\2");
}

TEST(Npz, ReadsWhatNumPyWrites) {
  const std::vector<NamedTensor> stored = load(kStored);
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[0].name, "a");
  EXPECT_TRUE(equal_bits(stored[0].tensor, Tensor::from<std::int16_t>({2}, {1, 2})));
  EXPECT_EQ(stored[1].name, "b");
  EXPECT_TRUE(equal_bits(stored[1].tensor, Tensor::from<double>({1}, {0.5})));
  const std::vector<NamedTensor> deflated = load(kDeflated);
  ASSERT_EQ(deflated.size(), 1U);
  EXPECT_TRUE(equal_bits(deflated[0].tensor, Tensor::zeros(DType::f32, {4, 5})));
}

TEST(Npz, WritesAndReadsBack) {
  const TempFolder folder;
  const auto path = folder.path() / "out.npz";
  const std::vector<NamedTensor> tensors{{"weights/w", Tensor::from<float>({2}, {1, 2})},
                                         {"n", Tensor::scalar<std::int64_t>(3)}};
  npz::save(path, tensors);
  const std::vector<NamedTensor> again = npz::load(path);
  ASSERT_EQ(again.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again[i].name, tensors[i].name);
    EXPECT_TRUE(equal_bits(again[i].tensor, tensors[i].tensor));
  }
  npz::save(path, {});
  EXPECT_TRUE(npz::load(path).empty());
}

TEST(Npz, WhatItUnpacksToHasALimit) {
  const OtherLimits enough({.inflated_bytes = 208, .inflated_share = 0});  // 128 and 20 * 4
  EXPECT_EQ(load(kDeflated).size(), 1U);
  const OtherLimits few({.inflated_bytes = 207, .inflated_share = 0});
  expect_error(ErrorKind::io,
               "the file of 201 bytes unpacks to 208 or more; the limit is 207; --allow "
               "inflated=NUMBER raises it",
               [] { load(kDeflated); });
  const OtherLimits share({.inflated_bytes = 7, .inflated_share = 1});
  EXPECT_EQ(load(kDeflated).size(), 1U);
}

TEST(Npz, NamesAndChoicesReadNoOtherArrays) {
  const TempFolder folder;
  std::string bytes = kStored;
  char& last_of_b = bytes[bytes.find("PK\x01\x02") - 1];  // in front of the directory
  last_of_b = static_cast<char>(last_of_b + 1);           // its checksum is wrong
  const std::filesystem::path path = folder.write("a.npz", bytes);
  EXPECT_EQ(npz::names(path), (std::vector<std::string>{"a", "b"}));
  const auto only_a = [](const std::string& name) { return name == "a"; };
  EXPECT_EQ(npz::load(path, only_a).size(), 1U);
  EXPECT_THROW(npz::load(path), Error);
}

TEST(Npz, NamesAreUnique) {
  const TempFolder folder;
  const std::vector<NamedTensor> twice(2, {"a", Tensor::scalar(1.0F)});
  const std::vector<NamedTensor> nameless(1, {"", Tensor::scalar(1.0F)});
  for (const auto& tensors : {twice, nameless}) {
    expect_error(ErrorKind::argument, "is empty or there twice",
                 [&] { npz::save(folder.path() / "out.npz", tensors); });
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npz, ACommentMayFollow) {
  EXPECT_EQ(load(patched(kStored, kStored.size() - 2, 2, 5) + "hello").size(), 2U);
}

TEST(Npz, TruncationIsRefused) {
  for (const std::string& bytes : {kStored, kDeflated}) {
    for (std::size_t size = 0; size < bytes.size(); size += 7) {
      EXPECT_THROW(load(bytes.substr(0, size)), Error) << size;
    }
  }
}

TEST(Npz, LiesAreRefused) {
  const auto refused = [](const std::string& bytes, std::string_view part,
                          ErrorKind kind = ErrorKind::io) {
    expect_error(kind, part, [&] { load(bytes); });
  };
  const std::size_t entry = last_entry(kDeflated);
  const std::size_t end = kDeflated.size() - 22;
  refused("", "no end record");
  refused(patched(kDeflated, end + 16, 4, 190), "leave the file");  // directory's offset
  refused(patched(kDeflated, end + 10, 2, 2), "cut off");           // count
  refused(patched(kDeflated, entry, 4, 0), "directory is damaged");
  refused(patched(kDeflated, entry + 8, 2, 1), "encrypted", ErrorKind::unsupported);
  refused(patched(kDeflated, entry + 10, 2, 12), "method 12", ErrorKind::unsupported);
  refused(patched(kDeflated, entry + 10, 2, 0), "claims 208 bytes from 73");
  refused(patched(kDeflated, entry + 16, 4, 1), "checksum of 'z.npy' is wrong");
  refused(patched(kDeflated, entry + 20, 4, 1000), "claim more bytes than the file has");
  refused(patched(kDeflated, entry + 24, 4, 207), "does not inflate to the 207 bytes");
  refused(patched(kDeflated, entry + 24, 4, 209), "does not inflate to the 209 bytes");
  refused(patched(kDeflated, entry + 24, 4, 0xfffffff0), "claims 4294967280 bytes from 73");
  refused(patched(kDeflated, entry + 42, 4, 1), "is not where the directory says");
  refused(patched(kDeflated, entry + 42, 4, 0x7fffffff), "leave the file");
  // Two entries that share the same bytes.
  const std::string entry_bytes = kDeflated.substr(entry, end - entry);
  std::string twice = kDeflated.substr(0, end);
  for (int i = 0; i < 3; ++i) twice += entry_bytes;
  twice += kDeflated.substr(end);
  twice = patched(twice, twice.size() - 12, 2, 4);
  twice = patched(twice, twice.size() - 10, 4, 4 * entry_bytes.size());
  twice = patched(twice, entry + 20, 4, 400);
  refused(twice, "claim more bytes than the file has");
}

TEST(Npz, MembersMustBeArrays) {
  const TempFolder folder;
  const auto write = [&](std::string_view name, std::string_view content) {
    ZipWriter zip(folder.path() / "a.npz");
    zip.add(name, content);
    zip.commit();
  };
  write("readme.txt", "hello");
  expect_error(ErrorKind::io, "'readme.txt' is no .npy file",
               [&] { npz::load(folder.path() / "a.npz"); });
  write("a.npy", "hello");
  expect_error(ErrorKind::io, "member 'a.npy': npy: ", [&] { npz::load(folder.path() / "a.npz"); });
}

TEST(Npz, RandomFlipsNeverCrash) {
  const Philox random(3);
  std::uint64_t drawn = 0;
  const TempFolder folder;
  int refused = 0;
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = round % 2 == 0 ? kStored : kDeflated;
    char& byte = bytes[random.below(drawn++, bytes.size())];
    byte = static_cast<char>(byte ^ static_cast<char>(1U << random.below(drawn++, 8)));
    try {
      npz::load(folder.write("a.npz", bytes));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 2);
}

}  // namespace
}  // namespace graft::testing

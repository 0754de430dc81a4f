#include "core/base/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <list>
#include <vector>

#include "core/base/large_pages.h"

namespace graft {
namespace {

std::uintptr_t address(const void* piece) {
  return reinterpret_cast<std::uintptr_t>(piece);
}

TEST(PoolTest, PiecesOfOneSizeLieBesideEachOther) {
  Pool pool;
  void* const first = pool.allocate(24);
  pool.allocate(100);  // of another size
  void* const second = pool.allocate(32);
  EXPECT_EQ(address(second) - address(first), 32U);
  EXPECT_EQ(address(first) % Pool::kAlignment, 0U);
}

TEST(PoolTest, WhatIsGivenBackServesTheSameSize) {
  Pool pool;
  void* const piece = pool.allocate(40);
  void* const kept = pool.allocate(48);
  pool.deallocate(piece, 40);
  EXPECT_NE(pool.allocate(16), piece);
  EXPECT_EQ(pool.allocate(48), piece);
  EXPECT_NE(pool.allocate(48), kept);
}

TEST(PoolTest, NoTwoPiecesShareMemory) {
  Pool pool;
  struct Piece {
    unsigned char* bytes;
    std::size_t size;
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < 4000; ++i) {
    const std::size_t size = i % 500;  // the largest come from the heap
    pieces.push_back({static_cast<unsigned char*>(pool.allocate(size)), size});
    std::memset(pieces.back().bytes, static_cast<int>(i % 251), size);
    if (i % 3 == 0) {
      pool.deallocate(pieces[i / 2].bytes, pieces[i / 2].size);
      pieces[i / 2] = {static_cast<unsigned char*>(pool.allocate(size)), size};
      std::memset(pieces[i / 2].bytes, static_cast<int>((i / 2) % 251), size);
    }
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::size_t k = 0; k < pieces[i].size; ++k) ASSERT_EQ(pieces[i].bytes[k], i % 251) << i;
    pool.deallocate(pieces[i].bytes, pieces[i].size);
  }
}

TEST(PoolTest, MegabytesLieInLargePages) {
  constexpr std::size_t kBytes = 96;
  Pool pool;
  std::vector<std::uint32_t*> pieces(3 * kLargePageBytes / kBytes);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i] = static_cast<std::uint32_t*>(pool.allocate(kBytes));
    std::fill_n(pieces[i], kBytes / sizeof(std::uint32_t), static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<std::uint32_t> wanted(kBytes / sizeof(std::uint32_t),
                                            static_cast<std::uint32_t>(i));
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), pieces[i])) << i;
  }
  EXPECT_TRUE(std::ranges::any_of(
      pieces, [](const void* piece) { return address(piece) % kLargePageBytes == 0; }));
}

TEST(PoolTest, ServesContainers) {
  Pool pool;
  std::list<int, PoolAllocator<int>> list(pool);
  std::vector<int, PoolAllocator<int>> vector(pool);
  for (int i = 0; i < 1000; ++i) {
    list.push_back(i);
    vector.push_back(i);
  }
  EXPECT_TRUE(std::ranges::equal(list, vector));
  const std::vector<int, PoolAllocator<int>> copy = vector;
  EXPECT_EQ(copy, vector);
  EXPECT_EQ(copy.get_allocator(), list.get_allocator());
}

}  // namespace
}  // namespace graft

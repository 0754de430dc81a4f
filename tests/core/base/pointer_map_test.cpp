#include "core/base/pointer_map.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(PointerMapTest, FindsWhatWasAddedAndNothingElse) {
  PointerMap<int, double> map;
  int a = 0;
  int b = 0;
  EXPECT_EQ(map.find(&a), nullptr);
  map[&a] = 1.5;
  EXPECT_EQ(map.at(&a), 1.5);
  EXPECT_FALSE(map.contains(&b));
  EXPECT_EQ(map.size(), 1U);
}

TEST(PointerMapTest, KeepsTheFirstEntryOfAKey) {
  PointerMap<int, int> map;
  int key = 0;
  EXPECT_TRUE(map.try_emplace(&key, 3).is_new);
  const auto again = map.try_emplace(&key, 4);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.value, 3);
  again.value = 5;
  EXPECT_EQ(map.at(&key), 5);
  EXPECT_EQ(map.size(), 1U);
}

TEST(PointerMapTest, GrowsWithManyKeys) {
  const std::vector<int> keys(5000);
  PointerMap<int, std::size_t> map;
  for (std::size_t i = 0; i < keys.size(); i += 2) map[&keys[i]] = i;
  EXPECT_EQ(map.size(), 2500U);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(map.contains(&keys[i]), i % 2 == 0) << i;
    if (i % 2 == 0) {
      ASSERT_EQ(map.at(&keys[i]), i);
    }
  }
}

TEST(PointerMapTest, KeepsItsEntriesWhenItMakesRoom) {
  const std::vector<int> keys(100);
  PointerMap<int, int> map;
  map.reserve(0);
  EXPECT_FALSE(map.contains(&keys[0]));
  map[&keys[0]] = 7;
  map.reserve(keys.size());
  EXPECT_EQ(map.at(&keys[0]), 7);
  const int* const first = map.find(&keys[0]);
  for (const int& key : keys) map[&key] += 1;
  EXPECT_EQ(map.find(&keys[0]), first);
  EXPECT_EQ(map.size(), keys.size());
}

TEST(PointerMapTest, OfNothingButKeysIsASet) {
  const std::vector<int> keys(2);
  PointerSet<int> set;
  EXPECT_TRUE(set.try_emplace(&keys[0]).is_new);
  EXPECT_FALSE(set.try_emplace(&keys[0]).is_new);
  EXPECT_FALSE(set.contains(&keys[1]));
  EXPECT_FALSE(set.contains(nullptr));
  EXPECT_EQ(set.size(), 1U);
}

}  // namespace
}  // namespace graft

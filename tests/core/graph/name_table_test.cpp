#include "core/graph/name_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "core/graph/graph.h"

namespace graft {
namespace {

TEST(NameTable, FindsNothingWhenEmpty) {
  const NameTable table;
  EXPECT_EQ(table.find("x"), nullptr);
  EXPECT_EQ(table.find(""), nullptr);
  EXPECT_EQ(table.size(), 0U);
}

TEST(NameTable, KeepsTheFirstOfAName) {
  Graph first;
  Graph second;
  Value* const x = first.add_input("x", {});
  NameTable table;
  EXPECT_EQ(table.insert(x), x);
  EXPECT_EQ(table.insert(second.add_input("x", {})), x);
  EXPECT_EQ(table.size(), 1U);
}

TEST(NameTable, FindsWhatIsThereThroughManyChanges) {
  constexpr int kNames = 300;
  constexpr int kChanges = 20'000;
  Graph graph;
  std::vector<Value*> values;
  for (int i = 0; i < kNames; ++i) values.push_back(graph.add_input("v" + std::to_string(i), {}));
  NameTable table;
  std::map<std::string, Value*> expected;
  std::mt19937 random(1);
  for (int i = 0; i < kChanges; ++i) {
    Value* const value = values[random() % kNames];
    if (expected.erase(value->name()) != 0) {
      table.erase(*value);
    } else {
      expected[value->name()] = value;
      EXPECT_EQ(table.insert(value), value);
    }
    const Value* const other = values[random() % kNames];
    const auto at = expected.find(other->name());
    ASSERT_EQ(table.find(other->name()), at == expected.end() ? nullptr : at->second);
  }
  EXPECT_EQ(table.size(), expected.size());
  for (const auto& [name, value] : expected) EXPECT_EQ(table.find(name), value);
}

}  // namespace
}  // namespace graft

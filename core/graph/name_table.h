#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace graft {

class Value;

/// The values of a graph by name. A hash table in two blocks of memory, which holds no names but
/// those of the values: a name that is not there is seldom looked at beyond its entry, and adding a
/// value allocates seldom. What is in it must not change its name.
class NameTable {
 public:
  /// Null when there is none.
  Value* find(std::string_view name) const;
  /// The value of that name: this one, unless there was one.
  Value* insert(Value* value);
  /// The value must be there.
  void erase(const Value& value);
  /// So that as many values are there without other blocks of memory.
  void reserve(std::size_t size);
  std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kFree = 0;

  /// Where the name is, or would be.
  std::size_t slot_of(std::string_view name, std::uint32_t hash) const;
  std::size_t mask() const { return hashes_.size() - 1; }
  std::size_t after(std::size_t slot) const { return (slot + 1) & mask(); }

  // By slot, a power of two, at most half of them taken. Apart, as most look-ups find no name, and
  // then read hashes alone.
  std::vector<std::uint32_t> hashes_;  // kFree where there is no value
  std::vector<Value*> values_;
  std::size_t size_ = 0;
};

}  // namespace graft

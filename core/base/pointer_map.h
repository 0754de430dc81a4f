#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace graft {

/// A hash table from addresses of what outlives it. Its entries lie in one block of memory, so that
/// a look-up in the table of a large graph misses the caches once, and filling it allocates seldom:
/// std::unordered_map makes a node of each entry. Nothing is ever taken out.
template <class Key, class T>
class PointerMap {
 public:
  /// Null when there is none. Valid until an entry is added.
  const T* find(const Key* key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[slot_of(key)];
    return slot.key == nullptr ? nullptr : &slot.value;
  }
  bool contains(const Key* key) const { return find(key) != nullptr; }
  /// The key must be there.
  const T& at(const Key* key) const {
    const T* const value = find(key);
    assert(value != nullptr);
    return *value;
  }

  struct Added {
    T& value;
    bool is_new;
  };
  /// Adds the entry unless there is one. The key is not null. The reference is valid until the next
  /// entry is added.
  Added try_emplace(const Key* key, T value = {}) {
    reserve(size_ + 1);
    Slot& slot = slots_[slot_of(key)];
    const bool is_new = slot.key == nullptr;
    if (is_new) {
      slot = {key, std::move(value)};
      ++size_;
    }
    return {slot.value, is_new};
  }
  T& operator[](const Key* key) { return try_emplace(key).value; }
  /// So that as many entries are there without another block of memory.
  void reserve(std::size_t size) {
    if (kFill * size > slots_.size()) grow(kFill * size);
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kFill = 2;  // at most half the slots are taken: look-ups stay short

  struct Slot {
    const Key* key = nullptr;
    [[no_unique_address]] T value{};
  };

  /// Where the key is, or would be. Up to 16 keys that are neighbours in memory, which walks come
  /// by one after the other, have neighbouring slots; where those begin, is spread by the high bits
  /// of a product by 2^64 / golden ratio (Knuth, The Art of Computer Programming 3, 6.4).
  std::size_t slot_of(const Key* key) const {
    constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;
    constexpr std::uint64_t kNeighbours = 16;
    const std::uint64_t place = reinterpret_cast<std::uintptr_t>(key) / std::bit_floor(sizeof(Key));
    const std::uint64_t start = ((place / kNeighbours) * kGolden) >> shift_;
    const std::size_t mask = slots_.size() - 1;
    std::size_t index = static_cast<std::size_t>(start ^ (place % kNeighbours)) & mask;
    while (slots_[index].key != nullptr && slots_[index].key != key) index = (index + 1) & mask;
    return index;
  }

  void grow(std::size_t least) {
    constexpr std::size_t kFewest = 16;
    std::vector<Slot> old(std::bit_ceil(std::max(kFewest, least)));
    old.swap(slots_);
    shift_ = std::countl_zero(slots_.size() - 1);
    for (Slot& slot : old) {
      if (slot.key != nullptr) slots_[slot_of(slot.key)] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;  // a power of two
  int shift_ = 0;            // leaves as many bits of a hash as number the slots
  std::size_t size_ = 0;
};

/// A set of such addresses.
template <class Key>
using PointerSet = PointerMap<Key, std::monostate>;

}  // namespace graft

#include "core/graph/name_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/graph/value.h"

namespace graft {
namespace {

constexpr std::size_t kFewest = 8;

/// Names that differ by the number at their end, as those of values that passes add do, lie beside
/// each other, sixteen in a row: who adds or copies many looks at few cache lines. Never kFree.
std::uint32_t hash_of(std::string_view name) {
  constexpr std::size_t kDigits = 9;
  constexpr std::size_t kNeighbours = 16;
  constexpr std::size_t kGolden = 0x9e3779b97f4a7c15U;  // as in PointerMap
  constexpr int kHighBits = 32;
  std::size_t number = 0;
  std::size_t digits = 0;
  std::size_t scale = 1;
  while (digits < std::min(kDigits, name.size())) {
    const char last = name[name.size() - 1 - digits];
    if (last < '0' || last > '9') break;
    number += scale * static_cast<std::size_t>(last - '0');
    scale *= 10;
    ++digits;
  }
  const std::size_t stem = std::hash<std::string_view>()(name.substr(0, name.size() - digits));
  const std::size_t group = (stem ^ (number / kNeighbours)) * kGolden;
  const std::size_t hash = (group ^ (group >> kHighBits)) ^ (number % kNeighbours);
  return std::max(std::uint32_t{1}, static_cast<std::uint32_t>(hash));
}

}  // namespace

std::size_t NameTable::slot_of(std::string_view name, std::uint32_t hash) const {
  std::size_t slot = hash & mask();
  while (hashes_[slot] != kFree && (hashes_[slot] != hash || values_[slot]->name() != name)) {
    slot = after(slot);
  }
  return slot;
}

Value* NameTable::find(std::string_view name) const {
  return values_.empty() ? nullptr : values_[slot_of(name, hash_of(name))];
}

Value* NameTable::insert(Value* value) {
  reserve(size_ + 1);
  const std::uint32_t hash = hash_of(value->name());
  const std::size_t slot = slot_of(value->name(), hash);
  if (hashes_[slot] == kFree) {
    hashes_[slot] = hash;
    values_[slot] = value;
    ++size_;
  }
  return values_[slot];
}

/// Those behind move up, as far as their hashes let them: a look-up ends at the first free slot.
void NameTable::erase(const Value& value) {
  std::size_t free = hash_of(value.name()) & mask();
  while (values_[free] != &value) free = after(free);
  for (std::size_t slot = after(free); hashes_[slot] != kFree; slot = after(slot)) {
    const std::size_t from_home = (slot - hashes_[slot]) & mask();
    if (from_home < ((slot - free) & mask())) continue;
    hashes_[free] = hashes_[slot];
    values_[free] = values_[slot];
    free = slot;
  }
  hashes_[free] = kFree;
  values_[free] = nullptr;
  --size_;
}

void NameTable::reserve(std::size_t size) {
  if (2 * size <= hashes_.size()) return;
  const std::size_t slots = std::max(kFewest, std::bit_ceil(2 * size));
  std::vector<std::uint32_t> hashes(slots, kFree);
  std::vector<Value*> values(slots, nullptr);
  hashes.swap(hashes_);
  values.swap(values_);
  for (std::size_t old = 0; old < hashes.size(); ++old) {
    if (hashes[old] == kFree) continue;
    std::size_t slot = hashes[old] & mask();
    while (hashes_[slot] != kFree) slot = after(slot);
    hashes_[slot] = hashes[old];
    values_[slot] = values[old];
  }
}

}  // namespace graft

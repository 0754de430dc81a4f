#include "core/graph/name_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/graph/value.h"

namespace graft {
namespace {

constexpr std::size_t kFewest = 8;

/// Names that differ by the number at their end, as those of values that passes add do, lie beside
/// each other, sixteen in a row: who adds or copies many looks at few cache lines.
std::size_t hash_of(std::string_view name) {
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
  return (group ^ (group >> kHighBits)) ^ (number % kNeighbours);
}

}  // namespace

std::size_t NameTable::slot_of(std::string_view name, std::size_t hash) const {
  std::size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot].value != nullptr &&
         (slots_[slot].hash != hash || slots_[slot].value->name() != name)) {
    slot = after(slot);
  }
  return slot;
}

Value* NameTable::find(std::string_view name) const {
  return slots_.empty() ? nullptr : slots_[slot_of(name, hash_of(name))].value;
}

Value* NameTable::insert(Value* value) {
  reserve(size_ + 1);
  const std::size_t hash = hash_of(value->name());
  Slot& slot = slots_[slot_of(value->name(), hash)];
  if (slot.value == nullptr) {
    slot = {hash, value};
    ++size_;
  }
  return slot.value;
}

/// Those behind move up, as far as their hashes let them: a look-up ends at the first free slot.
void NameTable::erase(const Value& value) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t free = hash_of(value.name()) & mask;
  while (slots_[free].value != &value) free = after(free);
  for (std::size_t slot = after(free); slots_[slot].value != nullptr; slot = after(slot)) {
    const std::size_t from_home = (slot - slots_[slot].hash) & mask;
    if (from_home < ((slot - free) & mask)) continue;
    slots_[free] = slots_[slot];
    free = slot;
  }
  slots_[free] = {};
  --size_;
}

void NameTable::reserve(std::size_t size) {
  if (2 * size <= slots_.size()) return;
  std::vector<Slot> old(std::max(kFewest, std::bit_ceil(2 * size)));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.value != nullptr) slots_[slot_of(slot.value->name(), slot.hash)] = slot;
  }
}

}  // namespace graft

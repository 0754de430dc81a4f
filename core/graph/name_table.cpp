#include "core/graph/name_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "core/graph/value.h"

namespace graft {
namespace {

constexpr std::size_t kFewest = 8;

std::size_t hash_of(std::string_view name) {
  return std::hash<std::string_view>()(name);
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
  std::size_t free = slot_of(value.name(), hash_of(value.name()));
  const std::size_t mask = slots_.size() - 1;
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

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace graft {

/// Plans are kept for few shapes: a caller with ever new ones must not fill the memory.
inline constexpr std::size_t kMostRecent = 16;

/// The first entry that `accepts` takes, moved to the end; null when there is none. Does not
/// allocate.
template <class Entry, class Accepts>
Entry* find_recent(std::vector<Entry>& entries, Accepts&& accepts) {
  const auto at = std::ranges::find_if(entries, accepts);
  if (at == entries.end()) return nullptr;
  std::rotate(at, at + 1, entries.end());
  return &entries.back();
}

/// Adds an entry; the one that was not used for longest goes when there are kMostRecent.
template <class Entry>
Entry& add_recent(std::vector<Entry>& entries, Entry entry) {
  if (entries.size() == kMostRecent) entries.erase(entries.begin());
  return entries.emplace_back(std::move(entry));
}

}  // namespace graft

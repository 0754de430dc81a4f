#include "core/base/pool.h"

#include <algorithm>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace graft {
namespace {

constexpr std::size_t kFewest = 4;  // a body of two nodes has a pool too
constexpr std::size_t kLargestBlock = 1 << 16;

/// Among the sizes of pieces.
std::size_t size_index(std::size_t bytes) {
  return bytes == 0 ? 0 : (bytes - 1) / Pool::kAlignment;
}

/// Nobody has that memory: the address sanitizer then finds who reads or writes there.
void forbid([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}

void permit([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

}  // namespace

/// As many pieces again as there are.
void Pool::add_block(Pieces& pieces, std::size_t bytes) {
  const std::size_t count = std::clamp<std::size_t>(pieces.made, kFewest, kLargestBlock / bytes);
  blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(count * bytes));
  pieces.next = blocks_.back().get();
  pieces.left = static_cast<std::uint32_t>(count);
  pieces.made += pieces.left;
  forbid(pieces.next, count * bytes);
}

void* Pool::allocate(std::size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  const std::size_t index = size_index(bytes);
  const std::size_t taken = (index + 1) * kAlignment;
  Pieces& pieces = pieces_[index];
  if (Free* const piece = pieces.free) {
    permit(piece, taken);
    pieces.free = piece->next;
    return piece;
  }
  if (pieces.left == 0) add_block(pieces, taken);
  --pieces.left;
  permit(pieces.next, taken);
  return std::exchange(pieces.next, pieces.next + taken);
}

void Pool::deallocate(void* piece, std::size_t bytes) {
  if (bytes > kLargest) return ::operator delete(piece);
  const std::size_t index = size_index(bytes);
  Free*& first = pieces_[index].free;
  first = ::new (piece) Free{first};
  forbid(piece, (index + 1) * kAlignment);
}

}  // namespace graft

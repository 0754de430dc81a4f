#include "core/base/limits.h"

#include <limits>

#include "core/base/error.h"

namespace graft {
namespace {

Limits& current() {
  static Limits limits;
  return limits;
}

constexpr NamedLimit kNamed[] = {{"folded", &Limits::folded_bytes},
                                 {"folded-tensor", &Limits::folded_tensor_bytes},
                                 {"settled", &Limits::settled_nodes},
                                 {"tables", &Limits::table_entries},
                                 {"rank", &Limits::rank},
                                 {"nodes", &Limits::inlined_nodes},
                                 {"calls", &Limits::call_depth},
                                 {"bodies", &Limits::graph_depth},
                                 {"unrolled", &Limits::unrolled_nodes},
                                 {"inflated", &Limits::inflated_bytes},
                                 {"seconds", &Limits::import_seconds}};

}  // namespace

std::span<const NamedLimit> named_limits() {
  return kNamed;
}

std::int64_t grown(std::int64_t base, std::int64_t share, std::uint64_t own) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t more = 0;
  if (own > kMost || __builtin_mul_overflow(share, static_cast<std::int64_t>(own), &more) ||
      __builtin_add_overflow(base, more, &more)) {
    return kMost;
  }
  return more;
}

std::string limit_text(std::string_view name, std::int64_t most) {
  return text("the limit is ", most, "; --allow ", name, "=NUMBER raises it");
}

const Limits& limits() {
  return current();
}

void set_limits(const Limits& limits) {
  current() = limits;
}

}  // namespace graft

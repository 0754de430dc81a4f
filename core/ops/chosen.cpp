#include "core/ops/chosen.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <unordered_set>

#include "core/ops/kernel_sets.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

struct Lookups {
  std::atomic<bool> are_remembered{false};
  std::mutex mutex;
  std::unordered_set<OpKey, OpKeyHash> rows;
  std::set<DType> dtypes;
};

Lookups& lookups() {
  static Lookups all;
  return all;
}

template <class Note>
void remember(const Note& note) {
  Lookups& all = lookups();
  if (!all.are_remembered.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(all.mutex);
  note(all);
}

constexpr DeviceKind kDevices[] = {DeviceKind::cpu, DeviceKind::cuda};

bool has_kernel(const KernelRegistry& registry, const OpKey& key) {
  Graph graph;
  Node* const node = graph.add_node(key.op, key.domain, {}, {});
  return registry.find_dynamic(*node) != nullptr ||
         std::ranges::any_of(kDevices, [&](DeviceKind device) {
           return !registry.find(device, key.op, key.domain).empty();
         });
}

/// The names of files of which one of the rows or kernels is of an op that was looked up.
template <class Registry, class Holds>
void collect(std::span<const RegisteredFile<Registry>> files, const Holds& holds,
             std::vector<std::string>& names) {
  for (const auto& file : files) {
    Registry one;
    file.add_to(one);
    if (std::ranges::any_of(lookups().rows, [&](const OpKey& key) { return holds(one, key); })) {
      names.emplace_back(file.name);
    }
  }
}

}  // namespace

void remember_lookups() {
  lookups().are_remembered = true;
}

void note_lookup(const OpDef& row) {
  remember([&](Lookups& all) { all.rows.insert({row.name, row.domain}); });
}

void note_lookup(DType dtype) {
  if (dtype == DType::undefined) return;  // of an operand that is left out
  remember([&](Lookups& all) { all.dtypes.insert(dtype); });
}

std::vector<DType> dtypes_looked_up() {
  const std::scoped_lock lock(lookups().mutex);
  return {lookups().dtypes.begin(), lookups().dtypes.end()};
}

std::vector<std::string> files_looked_up() {
  const std::scoped_lock lock(lookups().mutex);
  std::vector<std::string> names;
  collect(
      row_files(),
      [](const OpRegistry& one, const OpKey& key) {
        // Not by `find`, which is what is remembered.
        return std::ranges::any_of(one.all(), [&](const OpDef& row) {
          return OpKey{row.name, row.domain} == key;
        });
      },
      names);
  collect(chosen_kernel_set().files, has_kernel, names);
  std::ranges::sort(names);
  return names;
}

std::string_view missing_op() {
  return chosen_models().empty()
             ? "not known to Graft"
             : "not in this build, which has the ops of GRAFT_MODELS alone: add a model with it "
               "to that list, configure and build again";
}

std::string_view missing_kernel() {
  return chosen_models().empty()
             ? ""
             : ": this build has kernels for the types of GRAFT_MODELS alone: add a model with "
               "these to that list, configure and build again";
}

}  // namespace graft

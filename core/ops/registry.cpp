#include "core/ops/registry.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "core/ops/chosen.h"
#include "core/ops/kernel_sets.h"
#include "core/ops/register_op.h"

namespace graft {

bool OpDef::updates_state() const {
  return std::ranges::any_of(aliases, [](const Alias& a) { return a.kind == AliasKind::state; });
}

namespace {

/// What programs add, until something looks at the registries.
struct Additions {
  std::mutex mutex;
  std::atomic<bool> are_over{false};
  std::vector<KernelDef> kernels;
};

Additions& additions() {
  static Additions all;
  return all;
}

void end_additions() {
  Additions& all = additions();
  if (all.are_over.load(std::memory_order_acquire)) return;
  const std::scoped_lock lock(all.mutex);
  all.are_over.store(true, std::memory_order_release);
}

/// Changes only under the lock of `additions()`, and not once they are over.
OpRegistry& op_registry() {
  static OpRegistry registry = [] {
    OpRegistry filled;
    for (const auto& file : row_files()) file.add_to(filled);
    return filled;
  }();
  return registry;
}

/// Under the lock.
void require_in_time(const Additions& all, std::string_view what, const OpKey& key) {
  if (!all.are_over) return;
  fail(ErrorKind::argument, what, " '", key.domain, key.domain.empty() ? "" : "::", key.op,
       "' is registered too late: ops are fixed once a model has been trained, run or built; "
       "register at the start of main");
}

/// Under the lock.
void add_kernel(Additions& all, const KernelDef& kernel) {
  if ((kernel.make == nullptr) == (kernel.make_run == nullptr)) {
    fail(ErrorKind::argument, "a kernel of '", kernel.op, "' has ",
         kernel.make == nullptr ? "neither" : "both", " make and make_run, wanted one of them");
  }
  all.kernels.push_back(kernel);
}

}  // namespace

void register_op(OpDef row, const std::vector<KernelDef>& kernels) {
  const OpKey key{row.name, row.domain};
  if (key.op.empty() || row.infer == nullptr || key.domain == kInternalDomain) {
    fail(ErrorKind::argument, "the row of op '", key.domain, "::", key.op,
         "' wants a name, an inference and a domain other than ", kInternalDomain);
  }
  if (row.is_dynamic) {
    fail(ErrorKind::unsupported, "op '", key.op,
         "': programs register ops whose shapes do not depend on data");
  }
  Additions& all = additions();
  const std::scoped_lock lock(all.mutex);
  require_in_time(all, "op", key);
  const std::size_t earlier = all.kernels.size();
  try {
    for (KernelDef kernel : kernels) {
      kernel.op = key.op;
      kernel.domain = key.domain;
      add_kernel(all, kernel);
    }
    op_registry().add(std::move(row));
  } catch (...) {
    all.kernels.resize(earlier);
    throw;
  }
}

void register_kernel(const KernelDef& kernel) {
  Additions& all = additions();
  const std::scoped_lock lock(all.mutex);
  require_in_time(all, "a kernel of", {kernel.op, kernel.domain});
  if (op_registry().find(kernel.op, kernel.domain) == nullptr) {
    fail(ErrorKind::argument, "a kernel is registered for op '", kernel.domain,
         kernel.domain.empty() ? "" : "::", kernel.op, "', which is not known");
  }
  add_kernel(all, kernel);
}

const OpRegistry& OpRegistry::instance() {
  end_additions();
  return op_registry();
}

void OpRegistry::add(OpDef def) {
  const OpKey key{def.name, def.domain};
  if (by_name_.contains(key)) {
    fail(ErrorKind::argument, "op ", key.domain, "::", key.op, " is registered twice");
  }
  if (!def.samples) def.samples = no_samples;
  defs_.push_back(std::move(def));
  by_name_.emplace(key, &defs_.back());
}

const OpDef* OpRegistry::find(std::string_view op, std::string_view domain) const {
  const auto at = by_name_.find({op, domain});
  if (at == by_name_.end()) return nullptr;
  note_lookup(*at->second);
  return at->second;
}

/// Passes ask for the same node's definition again and again.
const OpDef* OpRegistry::find(const Node& node) const {
  const OpDef* def = node.op().definition.load(std::memory_order_relaxed);
  if (def == nullptr) {
    def = find(node.op_type(), node.domain());
    node.op().definition.store(def, std::memory_order_relaxed);
  }
  return def;
}

const OpDef& OpRegistry::get(const Node& node) const {
  const OpDef* const def = find(node);
  if (def == nullptr) {
    fail(ErrorKind::unsupported, "op ", node.domain().empty() ? "" : node.domain() + ".",
         node.op_type(), " is ", missing_op(), " (", node.label(), ")");
  }
  return *def;
}

const KernelRegistry& KernelRegistry::instance() {
  static const KernelRegistry registry = [] {
    end_additions();
    KernelRegistry filled;
    for (const KernelDef& kernel : additions().kernels) filled.add(kernel);
    for (const auto& file : chosen_kernel_set().files) file.add_to(filled);
    return filled;
  }();
  return registry;
}

void KernelRegistry::add(KernelDef def) {
  kernels_[def.device][{def.op, def.domain}].push_back(def);
}

void KernelRegistry::add(const DynamicKernelDef& def) {
  if (!dynamic_.emplace(OpKey{def.op, def.domain}, def.run).second) {
    fail(ErrorKind::argument, "op ", def.domain, "::", def.op, " has two dynamic kernels");
  }
}

DynamicKernel KernelRegistry::find_dynamic(const Node& node) const {
  const auto at = dynamic_.find({node.op_type(), node.domain()});
  return at == dynamic_.end() ? nullptr : at->second;
}

std::span<const KernelDef> KernelRegistry::find(DeviceKind device, std::string_view op,
                                                std::string_view domain) const {
  const auto of_device = kernels_.find(device);
  if (of_device == kernels_.end()) return {};
  const auto at = of_device->second.find({op, domain});
  return at == of_device->second.end() ? std::span<const KernelDef>() : at->second;
}

}  // namespace graft

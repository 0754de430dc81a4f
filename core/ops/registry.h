#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/ops/dynamic.h"
#include "core/ops/kernel.h"
#include "core/ops/op_def.h"

namespace graft {

/// What names an op. Look-ups run often and must not make strings.
struct OpKey {
  std::string_view op;
  std::string_view domain;

  friend bool operator==(const OpKey&, const OpKey&) = default;
};
struct OpKeyHash {
  std::size_t operator()(const OpKey& key) const {
    const std::hash<std::string_view> hash;
    return hash(key.op) + 31 * hash(key.domain);
  }
};
template <class T>
using ByOp = std::unordered_map<OpKey, T, OpKeyHash>;

/// All ops, in the order of registration: those of the rooms of core/ops, then a program's own
/// (register_op). Read-only from the first call of `instance` on.
class OpRegistry {
 public:
  static const OpRegistry& instance();

  /// Throws Error{argument} if the op is there already.
  void add(OpDef def);
  /// Null when unknown.
  const OpDef* find(std::string_view op, std::string_view domain = "") const;
  const OpDef* find(const Node& node) const;
  /// Throws Error{unsupported} naming op and node.
  const OpDef& get(const Node& node) const;
  const std::deque<OpDef>& all() const { return defs_; }

 private:
  std::deque<OpDef> defs_;
  ByOp<const OpDef*> by_name_;
};

/// All kernels. For an op and device, those registered first are tried first.
class KernelRegistry {
 public:
  static const KernelRegistry& instance();

  void add(KernelDef def);
  /// Empty when there is none.
  std::span<const KernelDef> find(DeviceKind device, std::string_view op,
                                  std::string_view domain) const;

  /// Throws Error{argument} if the op has one already.
  void add(const DynamicKernelDef& def);
  /// Null when the op has none.
  DynamicKernel find_dynamic(const Node& node) const;

 private:
  std::map<DeviceKind, ByOp<std::vector<KernelDef>>> kernels_;
  ByOp<DynamicKernel> dynamic_;
};

/// The oldest whose forms rows upgrade; core/passes/legacy.cpp brings older ones to it.
inline constexpr int kOldestOpset = 7;
/// The highest version of the standard op set whose ops the rows describe.
inline constexpr int kNewestOpset = 28;

}  // namespace graft

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/builder.h"

// How ops are written for opsets in which they had another form, or were not yet there.

namespace graft::edit {

/// A node in its newest form that `version` of the op set does not have; new nodes, in the newest
/// forms too, go before it. The types of its inputs are inferred.
struct OlderForm {
  Node& node;
  std::int64_t version;
  Builder& builder;

  /// Throws Error{unsupported}: "Resize node 'up': opset 13 lacks " + what.
  [[noreturn]] void refuse(const std::string& what) const;
  /// Empty where the input is left out.
  Expr input(int index) const;
  /// The number of the attribute, which goes. Refuses it unless it is `wanted`, the default.
  void drop_default(std::string_view attribute, std::int64_t wanted) const;
  void drop_default(std::string_view attribute, std::string_view wanted) const;
  /// An input that was an attribute: its integers, and the input goes. Refuses what is computed.
  std::vector<std::int64_t> take_integers(int input, const std::string& what) const;
};

/// Undoes what version `since` brought to the op. Returns one value an output, which take the
/// node's place, or nothing where it has changed the node itself.
struct OlderFormRule {
  std::string_view op;
  int since;
  std::vector<Expr> (*undo)(const OlderForm& form);
};

/// Changes of settings; of one op the newest first.
std::span<const OlderFormRule> setting_rules();
/// GroupNormalization with numbers for each channel, which before opset 21 it had for each group.
std::vector<Expr> group_norm_by_channel(const OlderForm& form);
/// ScatterElements and ScatterND, which before opset 16 could not add up.
std::vector<Expr> scatter_without_reduction(const OlderForm& form);

/// Ops that are new, written in older ones; nothing for a case that a rule does not take.
std::span<const OlderFormRule> op_rules();

}  // namespace graft::edit

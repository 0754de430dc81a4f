#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op_def.h"

namespace graft::test {

/// What the samples of one row reach. Only samples whose gradient the sweep checks count, unless
/// the row has none.
class SampleCoverage {
 public:
  explicit SampleCoverage(const OpDef& def);

  /// Whether an input that is data, not a list of axes, has a dim of `size`.
  bool has_dim(std::int64_t size) const;
  /// Inputs that the op broadcasts, found by trying on all samples: some dim over 1 may become 1
  /// without a change to the outputs, and may not grow.
  std::set<int> broadcastable() const;
  /// Inputs that a sample broadcasts: some dim of 1, or one in front, may take one other size.
  std::set<int> broadcast() const;
  /// The values that an attribute has in samples, as text; its default counts where it is left out.
  std::set<std::string> values(const AttributeDef& attribute) const;

 private:
  const OpDef& def_;
  std::vector<Sample> all_;
  std::vector<Sample> checked_;
};

/// Whether the newest form of a standard op has the attribute; true for other domains.
bool is_current(const OpDef& def, std::string_view attribute);

}  // namespace graft::test

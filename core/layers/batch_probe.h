#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/graph/model.h"
#include "core/layers/batch_axis.h"

namespace graft::edit {

/// The shape, where it is known.
std::optional<Shape> known(const Value* value);

/// Tells where values hold the batch: `old` is a copy of the model with the batch that it was made
/// for, settled, so that all shapes are known; in `grown`, a copy with a larger one, nodes are
/// inferred one after the other. A value's batch is the axis in which its two shapes differ.
class BatchProbe {
 public:
  /// How many times as large the larger batch is.
  static constexpr std::int64_t kGrowth = 7;

  BatchProbe(const Model& model, std::int64_t batch);

  /// Whether all shapes of the old batch are known, without which nothing can be told.
  bool is_complete() const;

  const Graph& old() const { return old_.graph(); }
  Graph& grown() { return grown_.graph(); }
  const Graph& grown() const { return grown_.graph(); }
  std::int64_t batch() const { return batch_; }

  /// Where a value of `grown` holds the batch; nullopt where it does not, or is not inferred yet.
  std::optional<BatchAxis> axis_of(const Value* value) const;
  /// The shape that a value of `grown` has in `old`.
  Shape old_shape(const Value* value) const;
  /// How much of its axis lies before the batch, where an op decides that.
  void set_outer(const Value* value, std::int64_t outer) { outer_[value->name()] = outer; }
  /// The same, where the op keeps what its inputs have.
  void keep_outer(const Node& node);
  /// Turns shapes that are computed in `grown` into constants, as far as nodes are right.
  void fold();

 private:
  std::int64_t batch_;
  Model old_;
  Model grown_;
  std::unordered_map<std::string, std::int64_t> outer_;  // where it is not 1, by value
};

}  // namespace graft::edit

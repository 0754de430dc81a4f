#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/shape.h"

namespace graft {

/// One dimension of a value in the graph: known, named ("batch": equal wherever the name recurs),
/// or unknown.
class Dim {
 public:
  Dim() = default;
  /// A known dim; an unknown one if `value` is negative.
  Dim(std::int64_t value) : value_(value < 0 ? -1 : value) {}  // NOLINT: a number is a dim
  explicit Dim(std::string symbol)
      : symbol_(std::make_shared<const std::string>(std::move(symbol))) {}

  bool is_known() const { return value_ >= 0; }
  /// The number; to be asked for only when it is known.
  std::int64_t value() const { return value_; }
  /// The name; empty when the dim is known or unknown.
  const std::string& symbol() const;

  /// Equal values, or equal non-empty names. An unknown dim equals nothing, not even itself.
  bool same_as(const Dim& other) const;
  /// Structural equality (for files and tests): two unknown dims are equal.
  friend bool operator==(const Dim& a, const Dim& b) {
    return a.value_ == b.value_ && a.symbol() == b.symbol();
  }

 private:
  std::int64_t value_ = -1;
  std::shared_ptr<const std::string> symbol_;  // most have none, and there are many
};

/// Dimensions of a value in the graph; the rank is known, each dim may not be. Copies share their
/// dims until one of them changes: a graph, its copies and nodes that are alike have few of them.
class SymShape {
 public:
  SymShape() = default;
  SymShape(std::initializer_list<Dim> dims) : SymShape(std::vector<Dim>(dims)) {}
  explicit SymShape(std::vector<Dim> dims);
  SymShape(const Shape& shape);  // NOLINT: it is one

  int rank() const { return static_cast<int>(dims().size()); }
  const Dim& operator[](int axis) const { return dims()[static_cast<std::size_t>(axis)]; }
  /// To be changed, for this shape alone. Valid until the shape is copied.
  Dim& operator[](int axis);
  const std::vector<Dim>& dims() const { return dims_ == nullptr ? no_dims() : *dims_; }
  auto begin() const { return dims().begin(); }
  auto end() const { return dims().end(); }

  /// The concrete shape when every dim is known. Throws Error{shape} if its size overflows.
  std::optional<Shape> known() const;

  friend bool operator==(const SymShape& a, const SymShape& b) {
    return a.dims_ == b.dims_ || a.dims() == b.dims();
  }

 private:
  static const std::vector<Dim>& no_dims();

  std::shared_ptr<std::vector<Dim>> dims_;  // null: rank 0
};

/// "[batch,3,?]".
void append_text(std::string& to, const Dim& dim);
void append_text(std::string& to, const SymShape& shape);

}  // namespace graft

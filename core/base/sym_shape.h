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

/// Dimensions of a value in the graph; the rank is known, each dim may not be.
class SymShape {
 public:
  SymShape() = default;
  SymShape(std::initializer_list<Dim> dims) : dims_(dims) {}
  explicit SymShape(std::vector<Dim> dims) : dims_(std::move(dims)) {}
  SymShape(const Shape& shape) : dims_(shape.begin(), shape.end()) {}  // NOLINT: it is one

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dim& operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  Dim& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  const std::vector<Dim>& dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }

  /// The concrete shape when every dim is known. Throws Error{shape} if its size overflows.
  std::optional<Shape> known() const;

  friend bool operator==(const SymShape& a, const SymShape& b) = default;

 private:
  std::vector<Dim> dims_;
};

/// "[batch,3,?]".
void append_text(std::string& to, const Dim& dim);
void append_text(std::string& to, const SymShape& shape);

}  // namespace graft

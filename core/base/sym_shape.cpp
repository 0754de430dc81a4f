#include "core/base/sym_shape.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/base/error.h"

namespace graft {

const std::string& Dim::symbol() const {
  static const std::string kNone;
  return symbol_ == nullptr ? kNone : *symbol_;
}

bool Dim::same_as(const Dim& other) const {
  if (is_known() || other.is_known()) return value_ == other.value_;
  return !symbol().empty() && symbol() == other.symbol();
}

SymShape::SymShape(std::vector<Dim> dims)
    : dims_(dims.empty() ? nullptr : std::make_shared<std::vector<Dim>>(std::move(dims))) {}

SymShape::SymShape(const Shape& shape) : SymShape(std::vector<Dim>(shape.begin(), shape.end())) {}

const std::vector<Dim>& SymShape::no_dims() {
  static const std::vector<Dim> kNone;
  return kNone;
}

Dim& SymShape::operator[](int axis) {
  if (dims_.use_count() > 1) dims_ = std::make_shared<std::vector<Dim>>(*dims_);
  return at(*dims_, axis);
}

std::optional<Shape> SymShape::known() const {
  std::vector<std::int64_t> dims;
  dims.reserve(this->dims().size());
  for (const Dim& dim : *this) {
    if (!dim.is_known()) return std::nullopt;
    dims.push_back(dim.value());
  }
  return Shape(std::move(dims));
}

void append_text(std::string& to, const Dim& dim) {
  if (dim.is_known()) return append_text(to, dim.value());
  to += dim.symbol().empty() ? "?" : dim.symbol();
}

void append_text(std::string& to, const SymShape& shape) {
  to += '[';
  for (int i = 0; i < shape.rank(); ++i) to += text(i > 0 ? "," : "", shape[i]);
  to += ']';
}

}  // namespace graft

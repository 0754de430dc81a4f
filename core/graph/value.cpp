#include "core/graph/value.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/graph/graph.h"

namespace graft {

void append_text(std::string& to, const ValueType& type) {
  if (type.is_container) return append_text(to, "container");
  to += type.dtype == DType::undefined ? "?" : name(type.dtype);
  if (type.shape) append_text(to, *type.shape);
}

Shape Value::known_shape() const {
  std::optional<Shape> known = type_.shape ? type_.shape->known() : std::nullopt;
  if (!known) fail(ErrorKind::shape, "the shape of '", name_, "' is not known: ", type_);
  return *std::move(known);
}

Value::Value(Graph* graph, std::string name)
    : graph_(graph),
      number_(graph->numbered_values_++),
      uses_(graph->memory_),
      name_(std::move(name)) {}

void Value::operator delete(Value* value, std::destroying_delete_t) {
  Pool& memory = value->graph_->memory_;
  value->~Value();
  memory.deallocate(value, sizeof(Value));
}

/// Makes no Shape: plans ask for the bytes of each value again and again.
std::size_t Value::bytes() const {
  const bool is_known = type_.shape && std::ranges::all_of(*type_.shape, &Dim::is_known);
  if (!is_known) return bytes_of(dtype(), known_shape().size());  // says what is missing
  std::int64_t size = 1;
  for (const Dim& dim : *type_.shape) size = checked_multiply(size, dim.value());
  return bytes_of(dtype(), size);
}

void Value::add_use(const Use& use) {
  uses_.push_back(use);
  at(use.node->use_places_, use.index) = static_cast<std::uint32_t>(uses_.size() - 1);
}

/// In constant time: a learning rate is read by thousands of nodes.
void Value::drop_use(std::uint32_t place) {
  const Use moved = uses_.back();
  uses_[place] = moved;
  at(moved.node->use_places_, moved.index) = place;
  uses_.pop_back();
}

void Value::set_initializer(Tensor tensor) {
  if (!is_initializer()) fail(ErrorKind::argument, "'", name_, "' is not an initializer");
  if (tensor.dtype() != initializer_.dtype() || tensor.shape() != initializer_.shape()) {
    fail(ErrorKind::argument, "initializer '", name_, "' is ", describe(initializer_),
         ", cannot become ", describe(tensor));
  }
  initializer_ = std::move(tensor);
}

}  // namespace graft

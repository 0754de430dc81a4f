#include "core/graph/value.h"

namespace graft {

std::ostream& operator<<(std::ostream& out, const ValueType& type) {
  if (type.is_container) return out << "container";
  if (type.dtype == DType::undefined) {
    out << '?';
  } else {
    out << type.dtype;
  }
  if (type.shape) out << *type.shape;
  return out;
}

Shape Value::known_shape() const {
  const std::optional<Shape> known = type_.shape ? type_.shape->known() : std::nullopt;
  if (!known) fail(ErrorKind::shape, "the shape of '", name_, "' is not known: ", type_);
  return *known;
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

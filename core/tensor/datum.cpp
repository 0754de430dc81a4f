#include "core/tensor/datum.h"

namespace graft {

const Tensor& Datum::tensor() const {
  if (const auto* const tensor = std::get_if<Tensor>(&content_)) return *tensor;
  fail(ErrorKind::type, "wanted a tensor, found ", describe(*this));
}

const Sequence& Datum::sequence() const {
  if (const auto* const sequence = std::get_if<SharedSequence>(&content_)) return **sequence;
  fail(ErrorKind::type, "wanted a sequence, found ", describe(*this));
}

const Dictionary& Datum::dictionary() const {
  if (const auto* const dictionary = std::get_if<SharedDictionary>(&content_)) return **dictionary;
  fail(ErrorKind::type, "wanted a map, found ", describe(*this));
}

std::string describe(const Datum& datum) {
  if (datum.is_tensor()) return describe(datum.tensor());
  if (datum.is_sequence()) return text("sequence of ", datum.sequence().items.size());
  if (datum.is_dictionary()) return text("map of ", datum.dictionary().keys.size());
  return "nothing";
}

}  // namespace graft

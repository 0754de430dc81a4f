#include "train/largest_batch.h"

#include "core/base/error.h"

namespace graft {

std::string largest_batch(std::vector<ValueType> types,
                          const std::function<void(const std::vector<ValueType>&)>& plan) {
  const auto first_dim = [](ValueType& type) {
    return type.shape && type.shape->rank() > 0 ? &(*type.shape)[0] : nullptr;
  };
  const Dim* const given = first_dim(types.front());
  if (given == nullptr || !given->is_known()) return {};
  const std::int64_t batch = given->value();
  const auto fits = [&](std::int64_t size) {
    std::vector<ValueType> smaller = types;
    for (ValueType& type : smaller) {
      Dim* const dim = first_dim(type);
      if (dim != nullptr && *dim == Dim(batch)) *dim = Dim(size);
    }
    try {
      plan(smaller);
      return true;
    } catch (const Error&) {  // too large still, or the model takes no other batch
      return false;
    }
  };
  std::int64_t most = 0;
  for (std::int64_t end = batch; end - most > 1;) {
    const std::int64_t middle = most + (end - most) / 2;
    (fits(middle) ? most : end) = middle;
  }
  return most == 0 ? "; a smaller batch does not fit either"
                   : text("; a batch of ", most, " fits, this one is ", batch);
}

}  // namespace graft

// What must not stand among kernels: an object that is made when the program is loaded.
#include "tests/isa/shared.h"

const std::vector<float>& early_numbers();

namespace {
const std::vector<float> kEarly{1.0F, 2.0F};
}  // namespace

const std::vector<float>& early_numbers() {
  return kEarly;
}

#include "tests/isa/shared.h"

void fill(std::vector<float>& numbers);
[[noreturn]] void refuse();
void never_called(std::vector<float>& numbers);

void fill(std::vector<float>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  scale(numbers, 1.0F);
}

void refuse() {
  throw Refused("nothing to compute");
}

void never_called(std::vector<float>& numbers) {
  scale(numbers, 3.0F);
}

#include "core/ops/pool/pool_rows.h"

namespace graft {

std::vector<AttributeDef> pool_attributes(std::initializer_list<AttributeDef> more) {
  std::vector<AttributeDef> attributes{
      {"auto_pad", AttributeType::text},      {"ceil_mode", AttributeType::integer},
      {"dilations", AttributeType::integers}, {"kernel_shape", AttributeType::integers, true},
      {"pads", AttributeType::integers},      {"strides", AttributeType::integers}};
  attributes.insert(attributes.end(), more);
  return attributes;
}

std::vector<PoolCase> pool_cases() {
  using Ints = std::vector<std::int64_t>;
  const Ints two{2, 2};
  const Ints three{3, 3};
  const auto same = [&](const char* mode) {
    return Attributes{{"kernel_shape", three}, {"strides", two}, {"auto_pad", mode}};
  };
  return {
      {"two_by_two", {2, 3, 6, 8}, {2, 3, 3, 4}, {{"kernel_shape", two}, {"strides", two}}},
      {"rest", {1, 2, 7, 5}, {1, 2, 3, 2}, {{"kernel_shape", two}, {"strides", two}}},
      {"overlapping", {2, 2, 5, 6}, {2, 2, 3, 4}, {{"kernel_shape", three}}},
      {"padded",
       {1, 3, 9, 11},
       {1, 3, 5, 6},
       {{"kernel_shape", three}, {"strides", two}, {"pads", Ints{1, 1, 1, 1}}}},
      {"asymmetric",
       {1, 2, 5, 6},
       {1, 2, 5, 3},
       {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{1, 2}}, {"pads", Ints{0, 1, 2, 0}}}},
      {"ceil",
       {1, 2, 6, 7},
       {1, 2, 3, 3},
       {{"kernel_shape", three}, {"strides", two}, {"ceil_mode", 1}}},
      {"ceil_padded",
       {1, 2, 4, 5},
       {1, 2, 2, 3},
       {{"kernel_shape", three},
        {"strides", Ints{3, 2}},
        {"pads", Ints{1, 1, 1, 1}},
        {"ceil_mode", 1}}},
      {"dilated",
       {1, 2, 8, 9},
       {1, 2, 4, 4},
       {{"kernel_shape", Ints{3, 2}},
        {"dilations", Ints{2, 3}},
        {"strides", Ints{1, 2}},
        {"pads", Ints{0, 1, 0, 0}}}},
      {"same_upper", {1, 2, 5, 6}, {1, 2, 3, 3}, same("SAME_UPPER")},
      {"same_lower", {1, 2, 6, 5}, {1, 2, 3, 3}, same("SAME_LOWER")},
      {"valid", {1, 2, 6, 7}, {1, 2, 2, 3}, same("VALID")},
      {"one_axis", {2, 3, 9}, {2, 3, 4}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}}},
      {"three_axes",
       {1, 2, 4, 5, 6},
       {1, 2, 3, 2, 6},
       {{"kernel_shape", Ints{2, 2, 3}},
        {"strides", Ints{1, 2, 1}},
        {"pads", Ints{0, 0, 1, 0, 0, 1}}}},
      {"one_element", {1, 1, 1, 1}, {1, 1, 1, 1}, {{"kernel_shape", Ints{1, 1}}}},
      {"empty_batch", {0, 2, 4, 4}, {0, 2, 2, 2}, {{"kernel_shape", two}, {"strides", two}}},
      {"wide", {2, 2, 3, 200}, {2, 2, 1, 198}, {{"kernel_shape", three}}},
      {"many", {4, 24, 24, 26}, {4, 24, 12, 13}, {{"kernel_shape", two}, {"strides", two}}},
  };
}

SampleInput distinct_image(const Shape& shape) {
  return {.shape = shape, .low = -50.0, .high = 50.0, .distinct = true};
}

}  // namespace graft

#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/error_of.h"

namespace graft {
namespace {

template <class T>
std::vector<T> list(const Tensor& tensor) {
  const auto values = tensor.values<const T>();
  return {values.begin(), values.end()};
}

TEST(Tensor, DefaultIsNotDefined) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(describe(none), "no tensor");
  EXPECT_FALSE(none.clone().defined());
  EXPECT_EQ(kind_of([&] { none.values<float>(); }), ErrorKind::type);
  EXPECT_EQ(kind_of([&] { none.copy_from(none); }), ErrorKind::type);
}

TEST(Tensor, HoldsElementsRowMajor) {
  const Tensor tensor = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(tensor.dtype(), DType::f32);
  EXPECT_EQ(tensor.size(), 4);
  EXPECT_EQ(tensor.bytes(), 16U);
  EXPECT_EQ(&tensor.device(), &cpu());
  EXPECT_EQ(list<float>(tensor), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(text(tensor), "f32[2,2]");
}

TEST(Tensor, RefusesAWrongNumberOfElementsOrBytes) {
  EXPECT_EQ(kind_of([] { Tensor::from<float>({3}, {1, 2}); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([] { Tensor::from_bytes(DType::i4, {3}, "ab", 1); }), ErrorKind::shape);
  EXPECT_EQ(Tensor::from_bytes(DType::i4, {3}, "ab", 2).bytes(), 2U);
  EXPECT_EQ(kind_of([] { Tensor::from_strings({2}, {"a"}); }), ErrorKind::shape);
}

TEST(Tensor, TypesWithoutPlainElementsAreRefused) {
  EXPECT_EQ(kind_of([] { Tensor::empty(DType::string, {1}); }), ErrorKind::type);
  EXPECT_EQ(kind_of([] { Tensor::empty(DType::undefined, {1}); }), ErrorKind::type);
  EXPECT_EQ(kind_of([] { Tensor::full(DType::f8e5m2, {1}, 1); }), ErrorKind::type);
}

TEST(Tensor, HugeShapesAreErrorsNotCrashes) {
  EXPECT_EQ(kind_of([] { Tensor::empty(DType::f64, {std::int64_t{1} << 61}); }), ErrorKind::shape);
}

TEST(Tensor, ValuesChecksTheType) {
  EXPECT_EQ(kind_of([] { Tensor::scalar(1.0F).values<double>(); }), ErrorKind::type);
}

TEST(Tensor, EmptyTensorHasNoElements) {
  const Tensor tensor = Tensor::zeros(DType::f32, {2, 0});
  EXPECT_TRUE(tensor.defined());
  EXPECT_TRUE(tensor.values<float>().empty());
  EXPECT_TRUE(equal_bits(tensor, tensor.clone()));
}

TEST(Tensor, FullConvertsTheValue) {
  EXPECT_EQ(list<std::int8_t>(Tensor::full(DType::i8, {2}, -3.7)),
            (std::vector<std::int8_t>{-3, -3}));
  EXPECT_EQ(static_cast<float>(Tensor::full(DType::f16, {}, 1.5).values<Half>()[0]), 1.5F);
  EXPECT_TRUE(Tensor::full(DType::boolean, {}, 2).values<bool>()[0]);
  EXPECT_EQ(list<double>(Tensor::zeros(DType::f64, {2})), (std::vector<double>{0, 0}));
}

TEST(Tensor, CopiesShareAndClonesDoNot) {
  const Tensor tensor = Tensor::from<int>({2}, {1, 2});
  const Tensor handle = tensor;
  const Tensor copy = tensor.clone();
  tensor.values<int>()[0] = 9;
  EXPECT_EQ(list<int>(handle), (std::vector<int>{9, 2}));
  EXPECT_EQ(list<int>(copy), (std::vector<int>{1, 2}));
  EXPECT_EQ(tensor.to(cpu()).data(), tensor.data());
}

TEST(Tensor, ReshapedSharesElements) {
  const Tensor tensor = Tensor::from<int>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor view = tensor.reshaped({3, 2});
  EXPECT_EQ(view.data(), tensor.data());
  EXPECT_EQ(view.shape(), (Shape{3, 2}));
  EXPECT_EQ(kind_of([&] { tensor.reshaped({4}); }), ErrorKind::shape);
}

TEST(Tensor, ViewKeepsItsOwnerAlive) {
  auto owner = std::make_shared<std::vector<float>>(std::vector<float>{1, 2});
  const std::weak_ptr<std::vector<float>> watch = owner;
  {
    const Tensor view = Tensor::view(DType::f32, {2}, owner->data(), owner);
    owner.reset();
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(list<float>(view), (std::vector<float>{1, 2}));
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, CopyFromOverwritesInPlace) {
  const Tensor target = Tensor::zeros(DType::f32, {2});
  target.copy_from(Tensor::from<float>({2}, {3, 4}));
  EXPECT_EQ(list<float>(target), (std::vector<float>{3, 4}));
  EXPECT_EQ(kind_of([&] { target.copy_from(Tensor::zeros(DType::f32, {3})); }), ErrorKind::shape);
  EXPECT_EQ(kind_of([&] { target.copy_from(Tensor::zeros(DType::i32, {2})); }), ErrorKind::shape);
  const Tensor strings = Tensor::from_strings({1}, {"a"});
  EXPECT_EQ(kind_of([&] { strings.copy_from(Tensor::from_strings({1}, {"b"})); }), ErrorKind::type);
}

TEST(Tensor, Strings) {
  const Tensor tensor = Tensor::from_strings({2}, {"a", "bc"});
  EXPECT_EQ(tensor.strings()[1], "bc");
  EXPECT_TRUE(equal_bits(tensor, tensor.clone()));
  EXPECT_FALSE(equal_bits(tensor, Tensor::from_strings({2}, {"a", "b"})));
  EXPECT_EQ(kind_of([] { Tensor::scalar(1.0F).strings(); }), ErrorKind::type);
  EXPECT_EQ(kind_of([&] { tensor.values<float>(); }), ErrorKind::type);
}

TEST(TensorCast, TruncatesAndSaturates) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor from = Tensor::from<float>({7}, {-1.9F, 1.9F, 300, -300, infinity, -infinity, NAN});
  EXPECT_EQ(list<std::int8_t>(from.cast(DType::i8)),
            (std::vector<std::int8_t>{-1, 1, 127, -128, 127, -128, 0}));
  EXPECT_EQ(list<std::uint8_t>(from.cast(DType::u8)),
            (std::vector<std::uint8_t>{0, 1, 255, 0, 255, 0, 0}));
  const Tensor large = Tensor::from<double>({3}, {0x1p63, -0x1p63, 0x1p64});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(list<std::int64_t>(large.cast(DType::i64)),
            (std::vector<std::int64_t>{most, -most - 1, most}));
  EXPECT_EQ(list<std::uint64_t>(large.cast(DType::u64)),
            (std::vector<std::uint64_t>{std::uint64_t{1} << 63, 0,
                                        std::numeric_limits<std::uint64_t>::max()}));
}

TEST(TensorCast, IntegersKeepTheirLowBits) {
  EXPECT_EQ(list<std::uint8_t>(Tensor::from<int>({2}, {257, -1}).cast(DType::u8)),
            (std::vector<std::uint8_t>{1, 255}));
}

TEST(TensorCast, EveryPairOfTypesKeepsSmallNumbers) {
  for (int from = 1; from <= 16; ++from) {
    for (int to = 1; to <= 16; ++to) {
      const auto has_values = [](int type) {
        return visit_dtype(AllTypes{}, static_cast<DType>(type), []<class T>() {});
      };
      if (!has_values(from) || !has_values(to)) continue;
      const Tensor ones = Tensor::full(static_cast<DType>(from), {2}, 1);
      EXPECT_EQ(to_double(ones.cast(static_cast<DType>(to))), (std::vector<double>{1, 1}))
          << from << " to " << to;
    }
  }
}

TEST(TensorCast, BoolIsTrueForAnythingButZero) {
  const Tensor from = Tensor::from<float>({4}, {0.0F, -0.0F, 0.1F, NAN});
  EXPECT_EQ(list<bool>(from.cast(DType::boolean)), (std::vector<bool>{false, false, true, true}));
}

TEST(TensorCast, RefusesOtherTypes) {
  EXPECT_EQ(kind_of([] { Tensor::scalar(1.0F).cast(DType::string); }), ErrorKind::type);
  EXPECT_EQ(kind_of([] { Tensor::scalar(1.0F).cast(DType::i4); }), ErrorKind::type);
  EXPECT_EQ(kind_of([] { Tensor().cast(DType::f32); }), ErrorKind::type);
}

TEST(Tensor, ReadsIntegersAndNumbers) {
  EXPECT_EQ(to_int64(Tensor::from<int>({2}, {-1, 5})), (std::vector<std::int64_t>{-1, 5}));
  EXPECT_EQ(kind_of([] { to_int64(Tensor::scalar(1.0F)); }), ErrorKind::type);
  EXPECT_EQ(to_double(Tensor::from<Half>({1}, {Half(0.5F)})), std::vector<double>{0.5});
  EXPECT_EQ(kind_of([] { to_double(Tensor::from_strings({}, {"1"})); }), ErrorKind::type);
}

TEST(Tensor, EqualBitsComparesTypeShapeAndBytes) {
  const Tensor tensor = Tensor::from<float>({2}, {0.0F, NAN});
  EXPECT_TRUE(equal_bits(tensor, tensor.clone()));
  EXPECT_FALSE(equal_bits(tensor, Tensor::from<float>({2}, {-0.0F, NAN})));
  EXPECT_FALSE(equal_bits(tensor, tensor.reshaped({1, 2})));
  EXPECT_FALSE(equal_bits(Tensor::zeros(DType::i32, {1}), Tensor::zeros(DType::f32, {1})));
  EXPECT_TRUE(equal_bits(Tensor(), Tensor()));
  EXPECT_FALSE(equal_bits(Tensor(), tensor));
}

}  // namespace
}  // namespace graft

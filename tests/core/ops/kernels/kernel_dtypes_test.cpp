#include "core/ops/kernels/kernel_dtypes.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(KernelDTypes, AreAllInThisBuildAndVisitedByTheirLists) {
  EXPECT_TRUE(is_kernel_dtype<BFloat16>(DType::bf16));
  EXPECT_FALSE(is_kernel_dtype<BFloat16>(DType::f16));
  int calls = 0;
  EXPECT_TRUE(visit_kernel_dtype(AllTypes{}, DType::i16, [&]<class T>() {
    EXPECT_EQ(dtype_of<T>, DType::i16);
    ++calls;
  }));
  EXPECT_FALSE(visit_kernel_dtype(FloatTypes{}, DType::i16, [&]<class T>() { ++calls; }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace graft

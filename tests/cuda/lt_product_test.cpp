// How products are described to cuBLASLt, and which are left to our own kernel. What comes out of
// it, CudaAgrees compares with the CPU.
#include "core/ops/kernels/lt_product_cuda.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ops/builder.h"
#include "core/ops/kernel.h"
#include "tests/core/error_of.h"
#include "tests/cuda/on_card.h"

namespace graft {
namespace {

using test::card;

DeviceProduct product(std::int64_t m, std::int64_t n, std::int64_t k) {
  DeviceProduct p;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

/// Element (row, column) of a matrix that is stored column by column, read as the library does.
double element(const LtMatrix& m, const std::vector<double>& data, std::int64_t row,
               std::int64_t column, std::int64_t entry) {
  const std::int64_t r = m.is_transposed ? column : row;
  const std::int64_t c = m.is_transposed ? row : column;
  EXPECT_LT(r, m.rows);
  EXPECT_LT(c, m.columns);
  return data.at(static_cast<std::size_t>(entry * m.step + c * m.ld + r));
}

std::vector<double> count_up(std::int64_t size) {
  std::vector<double> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 11) - 4.0;
  return values;
}

/// y of rows by the description alone, against y = a' b'.
void expect_described(DeviceProduct p) {
  const auto problem = LtProblem::from(p);
  ASSERT_TRUE(problem);
  const auto a = count_up(p.batch * p.m * p.k);
  const auto b = count_up(p.batch * p.k * p.n);
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    for (std::int64_t row = 0; row < p.m; ++row) {
      for (std::int64_t column = 0; column < p.n; ++column) {
        double wanted = 0.0;
        double found = 0.0;
        for (std::int64_t i = 0; i < p.k; ++i) {
          const std::int64_t a_at = p.transposes_a ? i * p.m + row : row * p.k + i;
          const std::int64_t b_at = p.transposes_b ? column * p.k + i : i * p.n + column;
          wanted += a[static_cast<std::size_t>(entry * p.a_steps[0] + a_at)] *
                    b[static_cast<std::size_t>(entry * p.b_steps[0] + b_at)];
          // The result's rows are y's columns.
          found += element(problem->first, b, column, i, entry) *
                   element(problem->second, a, i, row, entry);
        }
        EXPECT_EQ(found, wanted);
        EXPECT_EQ(entry * problem->result.step + row * problem->result.ld + column,
                  (entry * p.m + row) * p.n + column);
      }
    }
  }
}

TEST(LtProblem, SaysTheSameProductByColumns) {
  for (const bool transposes_a : {false, true}) {
    for (const bool transposes_b : {false, true}) {
      DeviceProduct p = product(3, 5, 4);
      p.transposes_a = transposes_a;
      p.transposes_b = transposes_b;
      expect_described(p);
      p.axes = 1;
      p.batch = p.dims[0] = 2;
      p.a_steps[0] = 12;
      p.b_steps[0] = 20;
      expect_described(p);
      p.a_steps[0] = 0;  // one a for all
      expect_described(p);
    }
  }
}

TEST(LtProblem, KnowsABiasFromAMatrix) {
  using Addend = LtProblem::Addend;
  DeviceProduct p = product(3, 5, 4);
  const auto addend = [&]() -> std::optional<Addend> {
    const auto problem = LtProblem::from(p);
    return problem ? std::optional(problem->addend) : std::nullopt;
  };
  p.c_row = 5;
  p.c_column = 1;
  EXPECT_EQ(addend(), Addend::none) << "without beta";
  p.beta = 0.5;
  EXPECT_EQ(addend(), Addend::matrix);
  p.c_row = 0;
  EXPECT_EQ(addend(), std::nullopt) << "a scaled row has no epilogue";
  p.beta = 1.0;
  EXPECT_EQ(addend(), Addend::bias);
  p.c_row = 1;
  p.c_column = 0;
  EXPECT_EQ(addend(), std::nullopt) << "a column";
}

TEST(LtProblem, LeavesToOthersWhatTheLibraryDoesNotTake) {
  DeviceProduct p = product(3, 5, 4);
  p.axes = 2;
  EXPECT_FALSE(LtProblem::from(p));
  EXPECT_FALSE(LtProblem::from(product(3, 5, 0)));
}

std::vector<std::string> makers(DType dtype, const Shape& a, const Shape& b,
                                const Shape& c = Shape{7}) {
  Graph graph("product");
  std::vector<Value*> inputs;
  for (const Shape& shape : {a, b, c}) {
    inputs.push_back(graph.add_input(text("x", inputs.size()), {dtype, SymShape(shape)}));
  }
  Builder builder(graph);
  const bool is_batch = a.rank() > 2;
  if (is_batch) inputs.pop_back();
  const Node* const node = builder.node(is_batch ? "MatMul" : "Gemm", "", inputs, 1);
  std::vector<std::string> names;
  for (const PreparedKernel& kernel : prepare_all_kernels(*node, card())) {
    names.emplace_back(kernel.name);
  }
  return names;
}

TEST(Products, AreCublasltsFirst) {
  using testing::ElementsAre;
  EXPECT_THAT(makers(DType::f32, {3, 5}, {5, 7}), ElementsAre("cublaslt", "tiles"));
  EXPECT_THAT(makers(DType::bf16, {3, 5}, {5, 7}), ElementsAre("cublaslt", "tiles"));
  EXPECT_THAT(makers(DType::f64, {3, 5}, {5, 7}), ElementsAre("tiles"));
  EXPECT_THAT(makers(DType::f32, {3, 5}, {5, 7}, {3, 1}), ElementsAre("tiles"));
  EXPECT_THAT(makers(DType::f32, {4, 3, 5}, {4, 5, 7}), ElementsAre("cublaslt", "tiles"));
  EXPECT_THAT(makers(DType::f32, {2, 1, 3, 5}, {4, 5, 7}), ElementsAre("tiles"));
}

TEST(LtProduct, RoundsToTf32WhereThatIsAllowed) {
  const DeviceProduct p = product(1, 1, 2);
  // 1 + 2^-12 has more digits than TF32 keeps.
  const test::OnCard<float> a({1.0F + 0x1p-12F, 2.0F});
  const test::OnCard<float> b({3.0F, 5.0F});
  const auto multiply = [&](bool allows_tf32) {
    const test::OnCard<float> y({0.0F});
    const auto made = LtProduct::make(p, {.allows_tf32 = allows_tf32}, card());
    const test::OnCard<std::byte> workspace(std::vector<std::byte>(made->workspace_bytes()));
    made->run(a.data(), b.data(), nullptr, y.data(), nullptr, workspace.data());
    card().synchronize();
    return y.read()[0];
  };
  EXPECT_EQ(multiply(true), 13.0F);
  EXPECT_EQ(multiply(false), 13.0F + 3 * 0x1p-12F);
}

TEST(LtProduct, WhatFailsIsSaidByTheNextWait) {
  const auto made = LtProduct::make(product(2, 2, 2), {}, card());
  const test::OnCard<float> a(std::vector<float>(8, 1.0F));
  const test::OnCard<std::byte> workspace(std::vector<std::byte>(made->workspace_bytes()));
  made->run(a.data() + 1, a.data(), nullptr, a.data(), nullptr, workspace.data());  // not aligned
  const Error error = error_of([] { card().synchronize(); });
  EXPECT_EQ(error.kind(), ErrorKind::device);
  EXPECT_THAT(error.what(),
              testing::HasSubstr("a product by cuBLASLt: CUBLAS_STATUS_INVALID_VALUE"));
  EXPECT_NO_THROW(card().synchronize());
}

}  // namespace
}  // namespace graft

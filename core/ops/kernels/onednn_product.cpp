#include <array>
#include <memory>
#include <string_view>

#include "core/base/parallel.h"
#include "core/ops/kernels/onednn.h"
#include "core/ops/kernels/openmp_calls.h"
#include "core/ops/kernels/product.h"

namespace graft {
namespace {

using Desc = dnnl::memory::desc;

Desc matrix(std::int64_t rows, std::int64_t columns, std::int64_t step, bool transposed) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, step} : dnnl::memory::dims{step, 1};
  return {{rows, columns}, dnnl::memory::data_type::f32, strides};
}

/// A primitive whose operands are bound to addresses before each run.
class Bound {
 public:
  Bound(const dnnl::primitive_desc_base& desc, const std::vector<std::pair<int, Desc>>& operands)
      : primitive_(desc) {
    memories_.reserve(operands.size());
    for (const auto& [argument, operand] : operands) {
      memories_.emplace_back(operand, onednn_engine(), nullptr);
      arguments_.push_back({argument, memories_.back().get()});
    }
  }

  /// One address an operand.
  template <std::size_t n>
  void run(const std::array<const void*, n>& addresses) const {
    for (std::size_t i = 0; i < n; ++i) {
      dnnl_memory_set_data_handle(memories_[i].get(), const_cast<void*>(addresses[i]));
    }
    primitive_.run(arguments_);
  }

 private:
  OnednnPrimitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// oneDNN 3.7 takes a column that lies apart, of one row of a^T or of c, for one that lies
/// together.
bool hides_step(const ProductSpec& p) {
  return (p.m == 1 && p.transposes_a && p.lda != 1) || (p.n == 1 && p.ldc != 1);
}

}  // namespace

Product<float> onednn_product(const ProductSpec& p) {
  if (panels_suit() || p.m == 0 || p.n == 0 || p.k == 0 || hides_step(p) ||
      !fits_onednn(std::array{p.m, p.n, p.k})) {
    return plain_product<float>(p);
  }
  const OnednnThreads threads(p.is_serial ? 1 : thread_count());
  const Desc a = matrix(p.m, p.k, p.lda, p.transposes_a);
  const Desc b = matrix(p.k, p.n, p.ldb, p.transposes_b);
  const Desc c = matrix(p.m, p.n, p.ldc, false);
  dnnl::primitive_attr attributes = onednn_attributes();
  if (p.adds) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    attributes.set_post_ops(after);
  }
  const dnnl::matmul::primitive_desc desc(onednn_engine(), a,
                                          p.packs_b ? onednn_any({p.k, p.n}) : b, c, attributes,
                                          /*allow_empty=*/true);
  // oneDNN's own plain loops are slower than panels.
  if (!desc || std::string_view(desc.impl_info_str()).starts_with("ref")) {
    return plain_product<float>(p);
  }
  Product<float> product;
  product.scratch_bytes = desc.scratchpad_desc().get_size();
  if (!is_same_layout(b, desc.weights_desc())) {
    product.packed_bytes = desc.weights_desc().get_size();
    const dnnl::reorder::primitive_desc reorder(onednn_engine(), b, onednn_engine(),
                                                desc.weights_desc());
    const auto pack = std::make_shared<const Bound>(
        reorder,
        std::vector<std::pair<int, Desc>>{{DNNL_ARG_FROM, b}, {DNNL_ARG_TO, desc.weights_desc()}});
    product.pack = [pack](const float* from, void* to) { pack->run<2>({from, to}); };
  }
  const auto bound = std::make_shared<const Bound>(
      desc, std::vector<std::pair<int, Desc>>{{DNNL_ARG_SRC, a},
                                              {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                              {DNNL_ARG_DST, c},
                                              {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}});
  product.run = [bound](const float* from, const void* weights, float* to, void* scratch) {
    bound->run<4>({from, weights, to, scratch});
  };
  return product;
}

}  // namespace graft

#include "core/ops/kernels/lt_product_cuda.h"

#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/device/cuda/cublaslt.h"
#include "core/ops/kernels/workspace.h"

namespace graft {
namespace {

LtMatrix stored(std::int64_t rows, std::int64_t columns, bool is_transposed, std::int64_t step) {
  // Memory of [rows, columns], or of [columns, rows] to be read transposed.
  const std::int64_t width = is_transposed ? rows : columns;
  const std::int64_t height = is_transposed ? columns : rows;
  return {
      .rows = width, .columns = height, .ld = width, .step = step, .is_transposed = is_transposed};
}

std::optional<LtProblem::Addend> addend_of(const DeviceProduct& p) {
  using Addend = LtProblem::Addend;
  if (p.beta == 0.0) return Addend::none;
  const bool has_columns = p.c_column == 1 || p.n == 1;
  if (p.batch != 1 || !has_columns) return std::nullopt;
  if (p.c_row == p.n || p.m == 1) return Addend::matrix;
  if (p.c_row == 0 && p.beta == 1.0) return Addend::bias;
  return std::nullopt;
}

}  // namespace

std::optional<LtProblem> LtProblem::from(const DeviceProduct& p) {
  const auto addend = addend_of(p);
  if (p.axes > 1 || p.k == 0 || p.m == 0 || p.n == 0 || p.batch > INT32_MAX || !addend) {
    return std::nullopt;
  }
  const bool is_batch = p.axes == 1;
  return LtProblem{
      .first = stored(p.k, p.n, p.transposes_b, is_batch ? p.b_steps[0] : 0),
      .second = stored(p.m, p.k, p.transposes_a, is_batch ? p.a_steps[0] : 0),
      .result = stored(p.m, p.n, false, is_batch ? p.m * p.n : 0),
      .batch = static_cast<std::int32_t>(p.batch),
      .addend = *addend,
  };
}

namespace {

/// One for each device, for the life of the process; null where none is made, for want of memory
/// for example: the next product asks again.
cublasLtHandle_t handle_of(CudaDevice& device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& handles = *new std::map<const CudaDevice*, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[&device];
  if (handle == nullptr && cublaslt()->create(&handle) != CUBLAS_STATUS_SUCCESS) handle = nullptr;
  return handle;
}

// What kernels may count on: rows of the arena and slices of parameters start so.
constexpr std::uint32_t kOperandAlignment = 16;
constexpr std::size_t kWorkspaceAlignment = 256;
constexpr std::int64_t kScales = 2;
// What the library's guide recommends for Hopper; others choose less.
constexpr std::uint64_t kMostWorkspaceBytes = std::uint64_t{32} << 20;

}  // namespace

struct LtProduct::State {
  const CublasLt& lt = *cublaslt();
  CudaDevice& device;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t first = nullptr;
  cublasLtMatrixLayout_t second = nullptr;
  cublasLtMatrixLayout_t result = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t algorithm{};
  LtProblem::Addend addend = LtProblem::Addend::none;
  float alpha = 1.0F;
  float beta = 0.0F;
  bool has_rate = false;
  bool is_good = true;

  explicit State(CudaDevice& own) : device(own) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (product != nullptr) lt.destroy_product(product);
    for (cublasLtMatrixLayout_t layout : {first, second, result}) {
      if (layout != nullptr) lt.destroy_layout(layout);
    }
    if (preference != nullptr) lt.destroy_preference(preference);
  }

  void keep(cublasStatus_t status) { is_good = is_good && status == CUBLAS_STATUS_SUCCESS; }

  template <class T>
  void set(cublasLtMatmulDescAttributes_t which, const T& value) {
    keep(lt.set_product(product, which, &value, sizeof value));
  }
  template <class T>
  void prefer(cublasLtMatmulPreferenceAttributes_t which, const T& value) {
    keep(lt.set_preference(preference, which, &value, sizeof value));
  }

  void describe(const LtProblem& p, const Options& options) {
    keep(lt.create_product(&product,
                           options.allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                           CUDA_R_32F));
    if (!is_good) return;
    const auto operation = [](const LtMatrix& matrix) {
      return matrix.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.first));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.second));
    if (p.addend == LtProblem::Addend::bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      // The choice looks at how the address is aligned; `run` sets the true one.
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
          reinterpret_cast<const void*>(std::uintptr_t{kOperandAlignment}));
    }
    if (options.has_rate) set(CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    const cudaDataType type = options.dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    describe(p.first, p.batch, type, first);
    describe(p.second, p.batch, type, second);
    describe(p.result, p.batch, type, result);
  }

  void describe(const LtMatrix& m, std::int32_t batch, cudaDataType type,
                cublasLtMatrixLayout_t& layout) {
    keep(lt.create_layout(&layout, type, static_cast<std::uint64_t>(m.rows),
                          static_cast<std::uint64_t>(m.columns), m.ld));
    if (!is_good) return;
    keep(lt.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
    keep(
        lt.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.step, sizeof m.step));
  }

  void choose() {
    keep(lt.create_preference(&preference));
    if (!is_good) return;
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspaceBytes);
    // Partial sums meet in the workspace, in order; never by atomics.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      prefer(which, kOperandAlignment);
    }
    int count = 0;
    if (is_good) {
      keep(lt.choose(handle, product, first, second, result, result, preference, 1, &algorithm,
                     &count));
    }
    is_good = is_good && count == 1 && algorithm.state == CUBLAS_STATUS_SUCCESS;
  }
};

LtProduct::LtProduct(std::unique_ptr<State> state) : state_(std::move(state)) {}
LtProduct::~LtProduct() = default;

std::shared_ptr<const LtProduct> LtProduct::make(const DeviceProduct& product,
                                                 const Options& options, CudaDevice& device) {
  const auto problem = LtProblem::from(product);
  if (!problem || cublaslt() == nullptr) return nullptr;
  const auto turn = device.take_turn();
  auto state = std::make_unique<State>(device);
  state->handle = handle_of(device);
  if (state->handle == nullptr) return nullptr;
  state->addend = problem->addend;
  state->alpha = static_cast<float>(product.alpha);
  if (problem->addend == LtProblem::Addend::matrix) state->beta = static_cast<float>(product.beta);
  state->has_rate = options.has_rate;
  state->describe(*problem, options);
  if (state->is_good) state->choose();
  if (!state->is_good) return nullptr;
  return std::shared_ptr<const LtProduct>(new LtProduct(std::move(state)));
}

std::size_t LtProduct::workspace_bytes() const {
  WorkspaceLayout layout;
  layout.reserve_bytes(kWorkspaceAlignment + state_->algorithm.workspaceSize);
  if (state_->has_rate) layout.reserve<float>(kScales);
  return layout.bytes();
}

void LtProduct::run(const void* a, const void* b, const void* c, void* y, const float* rate,
                    void* workspace) const {
  State& s = *state_;
  auto* const memory = static_cast<std::byte*>(workspace);
  const auto excess = reinterpret_cast<std::uintptr_t>(memory) % kWorkspaceAlignment;
  std::byte* const own = memory + (excess == 0 ? 0 : kWorkspaceAlignment - excess);
  const void* alpha = &s.alpha;
  const void* beta = &s.beta;
  if (s.has_rate) {
    WorkspaceLayout layout;
    layout.reserve_bytes(kWorkspaceAlignment + s.algorithm.workspaceSize);
    auto* const scales = reinterpret_cast<float*>(memory + layout.reserve<float>(kScales));
    write_scales(rate, s.alpha, s.beta, scales, s.device.stream());
    alpha = scales;
    beta = scales + 1;
  }
  if (s.addend == LtProblem::Addend::bias) s.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, c);
  const bool has_matrix = s.addend == LtProblem::Addend::matrix;
  const cublasStatus_t status = s.lt.multiply(
      s.handle, s.product, alpha, b, s.first, a, s.second, beta, has_matrix ? c : y, s.result, y,
      s.result, &s.algorithm.algo, own, s.algorithm.workspaceSize, s.device.stream());
  if (status != CUBLAS_STATUS_SUCCESS) {
    s.device.note_failure(text("a product by cuBLASLt: ", s.lt.status_text(status)));
  }
}

}  // namespace graft

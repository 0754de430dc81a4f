// The twins of cuBLASLt's functions: they compute on the CPU what the descriptors say, when the
// stream comes to it, and refuse what the library's reference does not promise to take.
#include "core/device/cuda/cublaslt.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/base/float16.h"
#include "core/device/cuda/emulated/count.h"
#include "core/device/cuda/emulated/streams.h"

namespace graft {
namespace {

struct Product {
  cublasComputeType_t compute;
  cublasOperation_t transpose_a = CUBLAS_OP_N;
  cublasOperation_t transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  cublasLtPointerMode_t scales = CUBLASLT_POINTER_MODE_HOST;
};

/// Column by column.
struct Layout {
  cudaDataType type;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t ld;
  std::int32_t batch = 1;
  std::int64_t step = 0;
};

struct Preference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignments[4] = {256, 256, 256, 256};
};

/// Each algorithm wants a little workspace, and addresses as aligned as the preference said.
struct Algorithm {
  static constexpr std::size_t kWorkspaceBytes = 256;
  std::uint32_t alignments[4];
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

constexpr auto kInvalid = CUBLAS_STATUS_INVALID_VALUE;

template <class T>
T& as(void* handle) {
  return *static_cast<T*>(handle);
}

template <class T>
cublasStatus_t read(const void* from, std::size_t bytes, T& to) {
  if (from == nullptr || bytes != sizeof to) return kInvalid;
  std::memcpy(&to, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

float element(const void* data, cudaDataType type, std::int64_t at) {
  return type == CUDA_R_16BF ? static_cast<float>(static_cast<const BFloat16*>(data)[at])
                             : static_cast<const float*>(data)[at];
}

/// To 10 bits of mantissa, as tensor cores read f32.
float as_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x1000U) & ~0x1fffU);
}

/// One call, which runs later.
struct Call {
  Product product;
  Layout a, b, c, d;
  const void* a_data;
  const void* b_data;
  const void* c_data;
  void* d_data;
  const void* alpha;
  const void* beta;
  float host_alpha = 0.0F;
  float host_beta = 0.0F;
  void* workspace;

  bool transposes_a() const { return product.transpose_a != CUBLAS_OP_N; }
  bool transposes_b() const { return product.transpose_b != CUBLAS_OP_N; }
  std::int64_t inner() const { return transposes_a() ? a.rows : a.columns; }

  float rounded(float x) const {
    return product.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? as_tf32(x) : x;
  }

  void run() const {
    emulated::count_kernel();
    std::memset(workspace, 0xff, Algorithm::kWorkspaceBytes);
    const bool is_on_device = product.scales == CUBLASLT_POINTER_MODE_DEVICE;
    const float by = is_on_device ? *static_cast<const float*>(alpha) : host_alpha;
    const float more = is_on_device ? *static_cast<const float*>(beta) : host_beta;
    for (std::int64_t entry = 0; entry < d.batch; ++entry) {
      const std::vector<float> left = operand_a(entry);
      for (std::int64_t column = 0; column < d.columns; ++column) {
        run_column(left, entry, column, by, more);
      }
    }
  }

  /// a' of an entry, column by column.
  std::vector<float> operand_a(std::int64_t entry) const {
    std::vector<float> values(static_cast<std::size_t>(d.rows * inner()));
    for (std::int64_t i = 0; i < inner(); ++i) {
      for (std::int64_t row = 0; row < d.rows; ++row) {
        const std::int64_t at = transposes_a() ? row * a.ld + i : i * a.ld + row;
        values[static_cast<std::size_t>(i * d.rows + row)] =
            rounded(element(a_data, a.type, entry * a.step + at));
      }
    }
    return values;
  }

  void run_column(const std::vector<float>& left, std::int64_t entry, std::int64_t column, float by,
                  float more) const {
    std::vector<double> sums(static_cast<std::size_t>(d.rows), 0.0);
    for (std::int64_t i = 0; i < inner(); ++i) {
      const std::int64_t b_at = transposes_b() ? i * b.ld + column : column * b.ld + i;
      const double factor = rounded(element(b_data, b.type, entry * b.step + b_at));
      const float* const own = left.data() + i * d.rows;
      for (std::size_t row = 0; row < sums.size(); ++row) sums[row] += factor * own[row];
    }
    for (std::int64_t row = 0; row < d.rows; ++row) {
      auto result = static_cast<float>(by * sums[static_cast<std::size_t>(row)]);
      const std::int64_t at = column * d.ld + row;
      if (more != 0.0F) {
        result += more * element(c_data, c.type, entry * c.step + column * c.ld + row);
      }
      if (product.epilogue == CUBLASLT_EPILOGUE_BIAS) result += element(product.bias, d.type, row);
      if (d.type == CUDA_R_16BF) {
        static_cast<BFloat16*>(d_data)[entry * d.step + at] = BFloat16(result);
      } else {
        static_cast<float*>(d_data)[entry * d.step + at] = result;
      }
    }
  }
};

cublasStatus_t create(cublasLtHandle_t* handle) {
  static int context;
  *handle = reinterpret_cast<cublasLtHandle_t>(&context);
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t version() {
  return CUBLAS_VERSION;
}

const char* status_text(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INVALID_VALUE";
  }
}

cublasStatus_t create_product(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                              cudaDataType scale) {
  if (scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Product{.compute = compute});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy_product(cublasLtMatmulDesc_t product) {
  delete &as<Product>(product);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_product(cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t which,
                           const void* from, std::size_t bytes) {
  auto& product = as<Product>(made);
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return read(from, bytes, product.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return read(from, bytes, product.transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return read(from, bytes, product.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return read(from, bytes, product.bias);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return read(from, bytes, product.scales);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t create_layout(cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows,
                             std::uint64_t columns, std::int64_t ld) {
  const Layout layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns),
                      ld};
  if (rows == 0 || columns == 0 || ld < layout.rows) return kInvalid;
  if (type != CUDA_R_32F && type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout(layout));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy_layout(cublasLtMatrixLayout_t layout) {
  delete &as<Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_layout(cublasLtMatrixLayout_t made, cublasLtMatrixLayoutAttribute_t which,
                          const void* from, std::size_t bytes) {
  auto& layout = as<Layout>(made);
  switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return read(from, bytes, layout.batch);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return read(from, bytes, layout.step);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t create_preference(cublasLtMatmulPreference_t* made) {
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy_preference(cublasLtMatmulPreference_t preference) {
  delete &as<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_preference(cublasLtMatmulPreference_t made,
                              cublasLtMatmulPreferenceAttributes_t which, const void* from,
                              std::size_t bytes) {
  auto& preference = as<Preference>(made);
  switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return read(from, bytes, preference.workspace_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return read(from, bytes, preference.reductions);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return read(from, bytes, preference.alignments[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return read(from, bytes, preference.alignments[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return read(from, bytes, preference.alignments[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return read(from, bytes, preference.alignments[3]);
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

/// Whether the four fit together as the library's reference says.
bool fit(const Product& p, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool ta = p.transpose_a != CUBLAS_OP_N;
  const bool tb = p.transpose_b != CUBLAS_OP_N;
  const auto has_batch = [&](const Layout& one) { return one.batch == d.batch; };
  return (ta ? a.columns : a.rows) == d.rows && (tb ? b.rows : b.columns) == d.columns &&
         (ta ? a.rows : a.columns) == (tb ? b.columns : b.rows) && c.rows == d.rows &&
         c.columns == d.columns && has_batch(a) && has_batch(b) && has_batch(c) &&
         a.type == b.type && c.type == d.type;
}

cublasStatus_t choose(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                      cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                      cublasLtMatmulPreference_t preference, int wanted,
                      cublasLtMatmulHeuristicResult_t results[], int* count) {
  *count = 0;
  if (wanted < 1 ||
      !fit(as<Product>(product), as<Layout>(a), as<Layout>(b), as<Layout>(c), as<Layout>(d))) {
    return kInvalid;
  }
  const auto& wish = as<Preference>(preference);
  // What a card adds by atomics, two runs may round differently.
  const bool is_fixed = (wish.reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) == 0;
  if (!is_fixed || wish.workspace_bytes < Algorithm::kWorkspaceBytes) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  Algorithm algorithm{};
  std::copy_n(wish.alignments, 4, algorithm.alignments);
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = Algorithm::kWorkspaceBytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

bool is_aligned(const void* address, std::uint32_t bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % bytes == 0;
}

cublasStatus_t multiply(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void* alpha,
                        const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                        cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                        cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                        const cublasLtMatmulAlgo_t* chosen, void* workspace,
                        std::size_t workspace_bytes, cudaStream_t stream) {
  if (handle == nullptr || chosen == nullptr || workspace_bytes < Algorithm::kWorkspaceBytes ||
      !is_aligned(workspace, 256)) {
    return kInvalid;
  }
  Algorithm algorithm;
  std::memcpy(&algorithm, chosen, sizeof algorithm);
  const void* const addresses[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    if (addresses[i] == nullptr || !is_aligned(addresses[i], algorithm.alignments[i])) {
      return kInvalid;
    }
  }
  Call call{as<Product>(product),
            as<Layout>(a_layout),
            as<Layout>(b_layout),
            as<Layout>(c_layout),
            as<Layout>(d_layout),
            a,
            b,
            c,
            d,
            alpha,
            beta};
  call.workspace = workspace;
  if (!fit(call.product, call.a, call.b, call.c, call.d)) return kInvalid;
  if (call.product.epilogue == CUBLASLT_EPILOGUE_BIAS && call.product.bias == nullptr) {
    return kInvalid;
  }
  if (call.product.scales == CUBLASLT_POINTER_MODE_HOST) {
    call.host_alpha = *static_cast<const float*>(alpha);
    call.host_beta = *static_cast<const float*>(beta);
  }
  emulated::enqueue(stream, [call] { call.run(); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

const CublasLt* cublaslt() {
  static constexpr CublasLt twins{version,
                                  status_text,
                                  create,
                                  create_product,
                                  destroy_product,
                                  set_product,
                                  create_layout,
                                  destroy_layout,
                                  set_layout,
                                  create_preference,
                                  destroy_preference,
                                  set_preference,
                                  choose,
                                  multiply};
  return &twins;
}

std::string describe_cublaslt() {
  return "cuBLASLt emulated";
}

}  // namespace graft

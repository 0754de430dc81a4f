#include "core/device/cuda/cublaslt.h"

#include "core/base/error.h"
#include "core/device/cuda/shared_library.h"

namespace graft {
namespace {

struct Loaded {
  SharedLibrary library{"libcublasLt.so.13"};
  CublasLt functions{};

  Loaded() {
    library.find("cublasLtGetVersion", functions.version);
    library.find("cublasLtGetStatusString", functions.status_text);
    library.find("cublasLtCreate", functions.create);
    library.find("cublasLtMatmulDescCreate", functions.create_product);
    library.find("cublasLtMatmulDescDestroy", functions.destroy_product);
    library.find("cublasLtMatmulDescSetAttribute", functions.set_product);
    library.find("cublasLtMatrixLayoutCreate", functions.create_layout);
    library.find("cublasLtMatrixLayoutDestroy", functions.destroy_layout);
    library.find("cublasLtMatrixLayoutSetAttribute", functions.set_layout);
    library.find("cublasLtMatmulPreferenceCreate", functions.create_preference);
    library.find("cublasLtMatmulPreferenceDestroy", functions.destroy_preference);
    library.find("cublasLtMatmulPreferenceSetAttribute", functions.set_preference);
    library.find("cublasLtMatmulAlgoGetHeuristic", functions.choose);
    library.find("cublasLtMatmul", functions.multiply);
  }
};

const Loaded& loaded() {
  static const Loaded& found = *new Loaded;
  return found;
}

}  // namespace

const CublasLt* cublaslt() {
  return loaded().library.problem().empty() ? &loaded().functions : nullptr;
}

std::string describe_cublaslt() {
  const std::string& problem = loaded().library.problem();
  if (!problem.empty()) return text("no cuBLASLt: ", problem);
  const std::size_t version = loaded().functions.version();
  return text("cuBLASLt ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

}  // namespace graft

#pragma once

#include <cublasLt.h>

#include <string>

namespace graft {

/// The functions of cuBLASLt that Graft calls: the library's, or on the emulated device their
/// twins, which compute on the CPU and are strict about what they are given.
struct CublasLt {
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtGetStatusString) status_text;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmulDescCreate) create_product;
  decltype(&cublasLtMatmulDescDestroy) destroy_product;
  decltype(&cublasLtMatmulDescSetAttribute) set_product;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmul) multiply;
};

/// Null where the library is not, or not whole.
const CublasLt* cublaslt();

/// "cuBLASLt 13.1.0"; or "no cuBLASLt: " and why.
std::string describe_cublaslt();

}  // namespace graft

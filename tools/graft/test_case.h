#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "io/named_tensor.h"
#include "tools/graft/arguments.h"
#include "tools/graft/compare.h"

namespace graft::cli {

struct CaseResult {
  enum class Outcome { passed, failed, skipped };
  Outcome outcome = Outcome::passed;
  /// Why it failed or was skipped, or what is to be known about how it passed.
  std::string reason;
};

/// An ONNX backend test: model.onnx with test_data_set_*/{input,output}_*.pb, the form of
/// https://github.com/onnx/onnx/tree/main/onnx/backend/test. Throws graft::Error where the model
/// cannot be run.
CaseResult run_backend_case(const std::filesystem::path& folder, const ComputeArguments& arguments,
                            const Tolerance& tolerance);

/// A training case: the same, and training.json with the batches, losses, gradients and trained
/// output of a recorded run, and the tolerance. Throws graft::Error where the model cannot be
/// trained.
CaseResult run_training_case(const std::filesystem::path& folder,
                             const ComputeArguments& arguments);

CaseResult failed(std::string reason);

/// The tensors of <stem>0.pb, <stem>1.pb, ... in `folder`, as far as there are files.
std::vector<NamedTensor> load_numbered(const std::filesystem::path& folder,
                                       const std::string& stem);
std::vector<Tensor> tensors_of(std::vector<NamedTensor> named);

}  // namespace graft::cli

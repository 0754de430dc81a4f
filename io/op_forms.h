#pragma once

#include <string>
#include <vector>

namespace graft::onnx {

/// What ONNX's checker asks of an op of the standard in each version that changed it, newest last,
/// one line each: `Gemm 13 takes 2 11? gives 1 1 attributes alpha:1 beta:1 transA:2 transB:2`.
/// After `takes` and `gives` stand the least number and one letter a place: 1 wanted, ? may be left
/// out, * the last, any number of times. Behind an attribute's name stands AttributeType's number,
/// and ! where it is required. A build with GRAFT_MODELS has these lines in place of libonnx
/// (adr/0075).
std::vector<std::string> op_forms(const std::string& op);

}  // namespace graft::onnx

#include "io/proto/sparse_tensor.h"

#include <cstring>
#include <vector>

#include "core/base/error.h"
#include "io/proto/tensor_proto.h"

namespace graft::onnx {
namespace {

/// A dense form may take this many bytes, and this many times what is stored.
constexpr std::size_t kDenseBytesAllowed = std::size_t{1} << 20;
constexpr std::size_t kDenseFactorAllowed = 256;

Shape dense_shape(const pb::SparseTensorProto& sparse, std::string_view who) {
  for (const std::int64_t dim : sparse.dims()) {
    if (dim <= 0) fail(ErrorKind::model, who, ": dimension ", dim, " is not positive");
  }
  if (sparse.dims().empty()) fail(ErrorKind::model, who, ": a sparse tensor needs dims");
  try {
    return Shape({sparse.dims().begin(), sparse.dims().end()});
  } catch (const Error& error) {
    fail(ErrorKind::model, who, ": ", error.what());
  }
}

/// Linear indices of the stored values, each checked against dims.
std::vector<std::int64_t> linear_indices(const pb::SparseTensorProto& sparse, const Shape& shape,
                                         std::string_view who) {
  if (!sparse.has_indices()) return {};
  const ExternalReader nowhere{{}};
  pb::TensorProto proto = sparse.indices();
  const std::vector<std::int64_t> flat = to_int64(take_tensor(proto, who, nowhere));
  const bool is_linear = sparse.indices().dims_size() == 1;
  const std::size_t width = is_linear ? 1 : static_cast<std::size_t>(shape.rank());
  std::vector<std::int64_t> linear(flat.size() / width);
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const std::int64_t limit = is_linear ? shape.size() : shape[static_cast<int>(i % width)];
    if (flat[i] < 0 || flat[i] >= limit) {
      fail(ErrorKind::model, who, ": index ", flat[i], " is outside [0,", limit, ")");
    }
    linear[i / width] = linear[i / width] * (is_linear ? 1 : limit) + flat[i];
  }
  return linear;
}

void check_indices(const pb::SparseTensorProto& sparse, const Shape& shape, std::string_view who) {
  const std::int64_t count = sparse.values().dims(0);
  const auto& dims = sparse.indices().dims();
  const bool linear = dims.size() == 1 && dims[0] == count;
  const bool coordinates = dims.size() == 2 && dims[0] == count && dims[1] == shape.rank();
  if (sparse.has_indices() ? !(linear || coordinates) : count != 0) {
    fail(ErrorKind::model, who, ": ", count, " values need indices of shape [", count, "] or [",
         count, ",", shape.rank(), "]");
  }
  if (sparse.has_indices() && sparse.indices().data_type() != pb::TensorProto::INT64) {
    fail(ErrorKind::model, who, ": its indices must be i64");
  }
}

}  // namespace

void check_sparse_tensor(const pb::SparseTensorProto& sparse, std::string_view who) {
  if (is_external(sparse.values()) || is_external(sparse.indices())) {
    fail(ErrorKind::unsupported, who, " is sparse and stored outside the model");
  }
  const Shape shape = dense_shape(sparse, who);
  const ExternalReader nowhere{{}};
  check_tensor(sparse.values(), who, nowhere);
  if (sparse.values().dims_size() != 1) {
    fail(ErrorKind::model, who, ": the values of a sparse tensor have rank 1, found ",
         sparse.values().dims_size());
  }
  if (sparse.has_indices()) check_tensor(sparse.indices(), who, nowhere);
  check_indices(sparse, shape, who);
  linear_indices(sparse, shape, who);
}

Tensor densify(const pb::SparseTensorProto& sparse, std::string_view who) {
  const Shape shape = dense_shape(sparse, who);
  const auto dtype = static_cast<DType>(sparse.values().data_type());
  if (bits_of(dtype) == 0 || bits_of(dtype) % 8 != 0) {
    fail(ErrorKind::unsupported, who, " is a sparse tensor of ", dtype);
  }
  const ExternalReader nowhere{{}};
  pb::TensorProto proto = sparse.values();
  const Tensor values = take_tensor(proto, who, nowhere);
  const std::size_t bytes = bytes_of(dtype, shape.size());
  if (bytes > kDenseBytesAllowed && bytes / kDenseFactorAllowed > values.bytes()) {
    fail(ErrorKind::unsupported, who, " is sparse: ", describe(dtype, shape), " takes ", bytes,
         " bytes when dense, and stores only ", values.bytes(), "; make it dense first");
  }
  Tensor dense = Tensor::empty(dtype, shape);
  std::memset(dense.data(), 0, bytes);
  const std::size_t width = static_cast<std::size_t>(bits_of(dtype)) / 8;
  const std::vector<std::int64_t> at = linear_indices(sparse, shape, who);
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::memcpy(static_cast<char*>(dense.data()) + static_cast<std::size_t>(at[i]) * width,
                static_cast<const char*>(values.data()) + i * width, width);
  }
  return dense;
}

}  // namespace graft::onnx

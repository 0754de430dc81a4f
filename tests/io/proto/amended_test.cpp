// What ONNX's checker takes amiss and Graft does not, goes in and comes out as it is.
#include <gtest/gtest.h>

#include <string>

#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

/// ONNX's checker takes it for deprecated; its scales are one a group there.
TEST(Amended, GroupNormalizationOfOpset18) {
  const std::string four =
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { "
      "dim_value: 1 } dim { dim_value: 4 } dim { dim_value: 3 } } } } } ";
  const std::string weights =
      "initializer { name: 's' data_type: 1 dims: 2 float_data: 1 float_data: 1 } "
      "initializer { name: 'b' data_type: 1 dims: 2 float_data: 0 float_data: 0 } ";
  const std::string node =
      "node { op_type: 'GroupNormalization' input: 'x' input: 's' input: 'b' output: 'y' "
      "attribute { name: 'num_groups' type: INT i: 2 } } "
      "output { name: 'y' type { tensor_type { elem_type: 1 } } } ";
  expect_round_trip(model_proto("ir_version: 8 opset_import { version: 18 } graph { name: 'g' " +
                                four + weights + node + "}"));
}

/// Nor is another model excused by it.
TEST(Amended, TheDomainForItIsNotImported) {
  const std::string node =
      "input { name: 'x' type { tensor_type { elem_type: 1 } } } "
      "node { op_type: 'Anything' domain: 'graft.unchecked' input: 'x' output: 'y' } "
      "output { name: 'y' type { tensor_type { elem_type: 1 } } }";
  expect_error(ErrorKind::model, "No opset import for domain 'graft.unchecked'",
               [&] { import(graph_model(node)); });
}

}  // namespace
}  // namespace graft::testing

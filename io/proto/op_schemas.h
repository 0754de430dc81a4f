#pragma once

#include <onnx/defs/schema.h>

#include <memory>

#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// libonnx's operator schemas, those of an operator set made when they are first searched. Its own
/// registry makes all 660 at the first look-up: 14 ms and 5 MB at the start of each process.
class OpSchemas final : public pb::ISchemaRegistry {
 public:
  static const OpSchemas& instance();

  /// What OpSchemaRegistry::Schema finds: the newest schema of an op that `opset` of the domain
  /// holds; nullptr if there is none. Several threads may look up at a time.
  const pb::OpSchema* GetSchema(const std::string& op, int opset,
                                const std::string& domain) const override;

 private:
  struct State;

  OpSchemas();
  std::unique_ptr<State> state_;
};

}  // namespace graft::onnx

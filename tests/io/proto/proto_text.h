#pragma once

#include <string>
#include <string_view>

#include "core/graph/model.h"
#include "io/proto/onnx_proto.h"

namespace graft::testing {

namespace pb = onnx::pb;

/// The message written in protobuf's text format; a test failure if it is malformed.
pb::ModelProto model_proto(const std::string& text);
pb::TensorProto tensor_proto(const std::string& text);

/// A model (ir_version 10, opset 21) whose graph holds `graph_fields`, in text format.
pb::ModelProto graph_model(const std::string& graph_fields);

/// Imports the message.
Model import(const pb::ModelProto& proto);
/// Exports the model and reads the bytes back as a message.
pb::ModelProto exported(const Model& model);

/// Where the messages differ field by field, unknown fields included; empty if nowhere.
std::string differences(const pb::ModelProto& a, const pb::ModelProto& b);

/// Expects that importing and exporting the message gives it back.
void expect_round_trip(const pb::ModelProto& proto);

/// What onnx.checker.check_model(full_check=True) says; empty if nothing.
std::string full_check(const pb::ModelProto& proto);

}  // namespace graft::testing

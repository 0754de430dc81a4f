#include "tests/io/proto/proto_text.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <onnx/checker.h>

#include "io/onnx.h"

namespace graft::testing {
namespace {

template <class Message>
Message from_text(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

}  // namespace

pb::ModelProto model_proto(const std::string& text) {
  return from_text<pb::ModelProto>(text);
}

pb::TensorProto tensor_proto(const std::string& text) {
  return from_text<pb::TensorProto>(text);
}

pb::ModelProto graph_model(const std::string& graph_fields) {
  return model_proto("ir_version: 10 opset_import { version: 21 } graph { name: 'g' " +
                     graph_fields + " }");
}

Model import(const pb::ModelProto& proto) {
  return onnx::parse(proto.SerializeAsString());
}

pb::ModelProto exported(const Model& model) {
  pb::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(onnx::serialize(model)));
  return proto;
}

std::string differences(const pb::ModelProto& a, const pb::ModelProto& b) {
  std::string report;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  const bool equal = differencer.Compare(a, b);
  return equal ? "" : report.substr(0, 2000);
}

void expect_round_trip(const pb::ModelProto& proto) {
  EXPECT_EQ(differences(proto, exported(import(proto))), "");
  // A clone holds the same.
  EXPECT_EQ(differences(proto, exported(import(proto).clone())), "");
}

std::string full_check(const pb::ModelProto& proto) {
  try {
    pb::checker::check_model(proto, true);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace graft::testing

// Ten ways to break each of ten models that PyTorch exported: what is wrong is said, and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <limits>

#include "core/base/error.h"
#include "io/onnx.h"
#include "io/proto/onnx_proto.h"
#include "tests/data/test_files.h"

namespace graft::testing {
namespace {

namespace pb = onnx::pb;
using ::testing::HasSubstr;

constexpr std::array kModels{
    "resnet_momentum",    "singa_cnn_sgd", "bert_adamw",  "crnn_ctc_adam",  "vit_adam",
    "mobilenet_momentum", "unet_bce_adam", "gru_rmsprop", "squeezenet_sgd", "mlp_mse_adagrad"};

/// Breaks the model and returns the name that the error must have.
using Break = std::string (*)(pb::ModelProto& model);

pb::NodeProto& middle(pb::ModelProto& model) {
  return *model.mutable_graph()->mutable_node(model.graph().node_size() / 2);
}

pb::TensorProto& weight(pb::ModelProto& model) {
  return *model.mutable_graph()->mutable_initializer(0);
}

std::string read_what_is_not_there(pb::ModelProto& model) {
  middle(model).set_input(0, "nowhere");
  return "nowhere";
}

std::string define_twice(pb::ModelProto& model) {
  const std::string first = model.graph().node(0).output(0);
  model.mutable_graph()->mutable_node(model.graph().node_size() - 1)->set_output(0, first);
  return first;
}

std::string close_a_cycle(pb::ModelProto& model) {
  pb::NodeProto& first = *model.mutable_graph()->mutable_node(0);
  first.add_input(model.graph().node(model.graph().node_size() - 1).output(0));
  return "";
}

std::string give_out_what_is_not_there(pb::ModelProto& model) {
  model.mutable_graph()->mutable_output(0)->set_name("missing");
  return "missing";
}

std::string take_bytes_of_a_weight(pb::ModelProto& model) {
  pb::TensorProto& tensor = weight(model);
  tensor.clear_float_data();
  tensor.set_raw_data("abc");
  return tensor.name();
}

std::string claim_a_huge_weight(pb::ModelProto& model) {
  weight(model).set_dims(0, std::numeric_limits<std::int64_t>::max() / 2);
  return weight(model).name();
}

std::string claim_a_negative_dim(pb::ModelProto& model) {
  weight(model).set_dims(0, -3);
  return weight(model).name();
}

std::string give_a_weight_no_type(pb::ModelProto& model) {
  weight(model).set_data_type(99);
  return weight(model).name();
}

std::string import_no_opset(pb::ModelProto& model) {
  model.clear_opset_import();
  return "opset";
}

std::string call_an_op_without_a_name(pb::ModelProto& model) {
  middle(model).clear_op_type();
  return middle(model).name();
}

constexpr std::array<Break, 10> kBreaks{read_what_is_not_there, define_twice,
                                        close_a_cycle,          give_out_what_is_not_there,
                                        take_bytes_of_a_weight, claim_a_huge_weight,
                                        claim_a_negative_dim,   give_a_weight_no_type,
                                        import_no_opset,        call_an_op_without_a_name};

class MalformedModels : public ::testing::TestWithParam<const char*> {
 protected:
  pb::ModelProto model() const {
    std::ifstream file(training_cases() / GetParam() / "model.onnx", std::ios::binary);
    pb::ModelProto model;
    EXPECT_TRUE(model.ParseFromIstream(&file));
    return model;
  }
};

TEST_P(MalformedModels, EndInOneErrorThatNamesThePlace) {
  for (std::size_t i = 0; i < kBreaks.size(); ++i) {
    pb::ModelProto broken = model();
    const std::string place = kBreaks[i](broken);
    const std::string bytes = broken.SerializeAsString();
    try {
      onnx::parse(bytes);
      ADD_FAILURE() << "variant " << i << " is taken";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(place)) << "variant " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MalformedModels, ::testing::ValuesIn(kModels),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace graft::testing

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <tuple>

#include "core/base/rng.h"
#include "io/proto/onnx_proto.h"
#include "io/wire/onnx_messages.h"

namespace graft::onnx::wire {
namespace {

namespace protobuf = google::protobuf;
using protobuf::FieldDescriptor;

const protobuf::Descriptor* descriptor_of(const std::string& message) {
  const auto* const known = protobuf::DescriptorPool::generated_pool();
  // Linked in by their use.
  std::ignore = pb::ModelProto::default_instance();
  std::ignore = pb::OptionalProto::default_instance();
  return known->FindMessageTypeByName(pb::ModelProto::descriptor()->file()->package() + "." +
                                      message);
}

std::string kind_of(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_BYTES:
      return "string";
    case FieldDescriptor::TYPE_ENUM:
      return field.enum_type()->name();
    case FieldDescriptor::TYPE_MESSAGE:
      return field.message_type()->full_name().substr(field.file()->package().size() + 1);
    default:
      return field.type_name();
  }
}

std::string line_of(const FieldDescriptor& field) {
  const char* const count = field.is_packed()                     ? " packed "
                            : field.is_repeated()                 ? " many "
                            : field.containing_oneof() != nullptr ? " one_of "
                                                                  : " ";
  return field.name() + " " + std::to_string(field.number()) + count + kind_of(field);
}

TEST(WireMessages, AreListedAsOnnxHasThem) {
  std::ifstream list("io/wire/onnx.messages");
  const protobuf::Descriptor* message = nullptr;
  int fields = 0;
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string first;
    std::string second;
    if (!(words >> first >> second)) continue;
    if (first == "constant") {
      std::string value;
      words >> value;
      EXPECT_EQ(value, std::to_string(pb::IR_VERSION));
    } else if (first == "message") {
      message = descriptor_of(second);
      ASSERT_NE(message, nullptr) << second;
    } else if (first == "enum") {
      const auto* const known = message->FindEnumTypeByName(second);
      ASSERT_NE(known, nullptr) << line;
      for (std::string value; words >> value;) {
        const auto* const found = known->FindValueByName(value.substr(0, value.find('=')));
        ASSERT_NE(found, nullptr) << value;
        EXPECT_EQ(value, found->name() + "=" + std::to_string(found->number()));
      }
    } else {
      const FieldDescriptor* const field = message->FindFieldByName(first);
      ASSERT_NE(field, nullptr) << line;
      EXPECT_EQ(line.substr(2), line_of(*field));
      ++fields;
    }
  }
  EXPECT_GT(fields, 100);
}

/// Fills each field of a message, those within down to `depth`.
class Filler {
 public:
  void fill(protobuf::Message& message, int depth) {
    const protobuf::Descriptor& type = *message.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      if (is_message && depth == 0) continue;
      for (int k = field.is_repeated() ? 2 : 1; k > 0; --k) put(message, field, depth);
    }
  }

 private:
  std::uint64_t next() { return random_.below(at_++, std::uint64_t{1} << 63); }

  void put(protobuf::Message& message, const FieldDescriptor& field, int depth) {
    const protobuf::Reflection& in = *message.GetReflection();
    const bool many = field.is_repeated();
    // Numbers of any size, some negative.
    const auto number =
        static_cast<std::int64_t>(next() >> next() % 60) * (next() % 2 == 0 ? 1 : -1);
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return fill(many ? *in.AddMessage(&message, &field) : *in.MutableMessage(&message, &field),
                    depth - 1);
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text(next() % 200, 'x');
        return many ? in.AddString(&message, &field, text) : in.SetString(&message, &field, text);
      }
      case FieldDescriptor::CPPTYPE_INT64:
        return many ? in.AddInt64(&message, &field, number) : in.SetInt64(&message, &field, number);
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto small = static_cast<std::int32_t>(number);
        return many ? in.AddInt32(&message, &field, small) : in.SetInt32(&message, &field, small);
      }
      case FieldDescriptor::CPPTYPE_UINT64:
        return in.AddUInt64(&message, &field, next());
      case FieldDescriptor::CPPTYPE_FLOAT: {
        const auto value = static_cast<float>(number);
        return many ? in.AddFloat(&message, &field, value) : in.SetFloat(&message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return in.AddDouble(&message, &field, static_cast<double>(number));
      case FieldDescriptor::CPPTYPE_ENUM:
        return in.SetEnumValue(&message, &field, 1);
      default:
        FAIL() << "a kind that ONNX had no field of: " << field.full_name();
    }
  }

  Philox random_{0, 1};
  std::uint64_t at_ = 0;
};

pb::ModelProto filled_model() {
  pb::ModelProto model;
  Filler().fill(model, 5);
  return model;
}

TEST(WireMessages, KeepEachFieldOfAModel) {
  const pb::ModelProto model = filled_model();
  ModelProto own;
  ASSERT_TRUE(own.ParseFromString(model.SerializeAsString()));
  EXPECT_EQ(own.ByteSizeLong(), model.ByteSizeLong());
  pb::ModelProto again;
  ASSERT_TRUE(again.ParseFromString(own.SerializeAsString()));
  EXPECT_TRUE(protobuf::util::MessageDifferencer::Equals(model, again));
  EXPECT_EQ(own.graph().node_size(), 2);
  EXPECT_EQ(own.graph().node(0).attribute(1).s(), model.graph().node(0).attribute(1).s());
  EXPECT_EQ(own.graph().initializer(0).dims(1), model.graph().initializer(0).dims(1));
}

TEST(WireMessages, WriteTheBytesOfProtobuf) {
  pb::NodeProto node;
  node.add_input("x");
  node.add_input("");
  node.add_output("y");
  node.set_op_type("Clip");
  pb::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("axes");
  attribute.set_type(pb::AttributeProto::INTS);
  for (const std::int64_t value : {0L, -1L, 300L, 1L << 40}) attribute.add_ints(value);
  attribute.mutable_t()->add_float_data(1.5F);
  attribute.mutable_t()->add_float_data(-0.0F);
  NodeProto own;
  ASSERT_TRUE(own.ParseFromString(node.SerializeAsString()));
  EXPECT_EQ(own.SerializeAsString(), node.SerializeAsString());
  const NodeProto copy = own;
  own.Clear();
  EXPECT_EQ(own.SerializeAsString(), "");
  EXPECT_EQ(copy.SerializeAsString(), node.SerializeAsString());
}

TEST(WireMessages, RefuseBytesThatEndEarlyAsProtobufDoes) {
  pb::GraphProto graph;
  Filler().fill(graph, 3);
  const std::string bytes = graph.SerializeAsString();
  for (std::size_t count = 0; count < bytes.size(); count += 7) {
    const std::string part = bytes.substr(0, count);
    EXPECT_EQ(GraphProto().ParseFromString(part), pb::GraphProto().ParsePartialFromString(part))
        << count;
  }
}

TEST(WireMessages, TakeDamagedBytesOrRefuseThem) {
  pb::GraphProto graph;
  Filler().fill(graph, 2);
  const std::string bytes = graph.SerializeAsString();
  const Philox random(7, 0);
  int taken = 0;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    std::string damaged = bytes;
    damaged[random.below(2 * i, bytes.size())] = static_cast<char>(random.below(2 * i + 1, 256));
    GraphProto own;
    if (!own.ParseFromString(damaged)) {
      EXPECT_FALSE(pb::GraphProto().ParseFromString(damaged)) << i;
      continue;
    }
    ++taken;
    GraphProto again;
    ASSERT_TRUE(again.ParseFromString(own.SerializeAsString()));
    EXPECT_EQ(again.SerializeAsString(), own.SerializeAsString());
  }
  EXPECT_GT(taken, 100);
}

TEST(WireMessages, JoinWhatComesTwice) {
  pb::TypeProto first;
  first.mutable_tensor_type()->set_elem_type(1);
  pb::TypeProto second;
  second.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(3);
  TypeProto own;
  ASSERT_TRUE(own.ParseFromString(first.SerializeAsString() + second.SerializeAsString()));
  EXPECT_EQ(own.tensor_type().elem_type(), 1);
  EXPECT_EQ(own.tensor_type().shape().dim(0).dim_value(), 3);
  pb::TypeProto other;
  other.mutable_sequence_type();
  ASSERT_TRUE(own.ParseFromString(first.SerializeAsString() + other.SerializeAsString()));
  EXPECT_EQ(own.value_case(), TypeProto::kSequenceType);
  EXPECT_FALSE(own.has_tensor_type());
}

TEST(WireMessages, EndWhereTheyNestTooDeeply) {
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    pb::TypeProto outer;
    outer.mutable_sequence_type()->mutable_elem_type()->ParseFromString(bytes);
    bytes = outer.SerializeAsString();
  }
  TypeProto own;
  EXPECT_TRUE(own.parse(bytes, 100));
  EXPECT_FALSE(own.parse(bytes, 98));
}

}  // namespace
}  // namespace graft::onnx::wire

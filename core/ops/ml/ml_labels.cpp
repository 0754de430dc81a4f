#include "core/ops/ml/ml_scores.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

constexpr NotDifferentiable kLookUp{"it looks values up"};

std::optional<SymShape> shape_of(const InferContext& context) {
  const SymShape* const shape = context.shape(0);
  return shape == nullptr ? std::nullopt : std::optional(*shape);
}

/// The element type that the attributes <prefix>_* say; undefined when there is none.
DType mapped_type(const Attributes& attributes, const std::string& prefix) {
  if (const Tensor tensor = attributes.get_tensor(prefix + "_tensor"); tensor.defined()) {
    return tensor.dtype();
  }
  if (attributes.has(prefix + "_strings")) return DType::string;
  if (attributes.has(prefix + "_int64s")) return DType::i64;
  return attributes.has(prefix + "_floats") ? DType::f32 : DType::undefined;
}

void infer_label_encoder(InferContext& context) {
  DType dtype = mapped_type(context.attributes(), "values");
  // The form of opset 1: classes_strings maps strings to their places and back.
  if (context.attributes().has("classes_strings")) {
    dtype = context.dtype(0) == DType::string ? DType::i64 : DType::string;
  }
  context.set_output(0, dtype, shape_of(context));
}

void infer_category_mapper(InferContext& context) {
  context.set_output(0, context.dtype(0) == DType::string ? DType::i64 : DType::string,
                     shape_of(context));
}

std::int64_t list_size(const Attributes& attributes, std::string_view ints,
                       std::string_view texts) {
  const Attribute* const found = attributes.find(texts);
  if (found != nullptr) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&found->value)) {
      if (!list->empty()) return static_cast<std::int64_t>(list->size());
    }
  }
  return static_cast<std::int64_t>(attributes.get_ints(ints).size());
}

void infer_one_hot_encoder(InferContext& context) {
  const auto shape = shape_of(context);
  if (!shape) return context.set_output(0, DType::f32);
  std::vector<Dim> dims = shape->dims();
  dims.emplace_back(list_size(context.attributes(), "cats_int64s", "cats_strings"));
  context.set_output(0, DType::f32, SymShape(std::move(dims)));
}

void infer_dict_vectorizer(InferContext& context) {
  const auto size = list_size(context.attributes(), "int64_vocabulary", "string_vocabulary");
  context.set_output(0, DType::undefined, SymShape{Dim(1), Dim(size)});
}

void infer_zip_map(InferContext& context) {
  if (Value* const output = context.node().output()) output->set_type({.is_container = true});
}

/// Maps and strings are no samples: see ml_labels_test.cpp.
}  // namespace

/// ONNX-ML's encoders of labels, and what makes maps and takes them apart.
void register_ml_labels(OpRegistry& registry) {
  const auto add = [&](std::string_view name, std::vector<Since> since,
                       std::vector<AttributeDef> attributes, Infer infer) {
    registry.add({.name = name,
                  .domain = kMlDomain,
                  .since = std::move(since),
                  .inputs = {{"X"}},
                  .outputs = {{"Y"}},
                  .attributes = std::move(attributes),
                  .infer = infer,
                  .is_dynamic = true,
                  .backward = kLookUp,
                  .samples = no_samples});
  };
  add("LabelEncoder", {{1}, {2, "keys and values"}, {4, "tensors"}},
      {{"classes_strings", AttributeType::texts},
       {"default_float", AttributeType::number},
       {"default_int64", AttributeType::integer},
       {"default_string", AttributeType::text},
       {"default_tensor", AttributeType::tensor},
       {"keys_floats", AttributeType::numbers},
       {"keys_int64s", AttributeType::integers},
       {"keys_strings", AttributeType::texts},
       {"keys_tensor", AttributeType::tensor},
       {"values_floats", AttributeType::numbers},
       {"values_int64s", AttributeType::integers},
       {"values_strings", AttributeType::texts},
       {"values_tensor", AttributeType::tensor}},
      infer_label_encoder);
  add("CategoryMapper", {{1}},
      {{"cats_int64s", AttributeType::integers},
       {"cats_strings", AttributeType::texts},
       {"default_int64", AttributeType::integer},
       {"default_string", AttributeType::text}},
      infer_category_mapper);
  add("OneHotEncoder", {{1}},
      {{"cats_int64s", AttributeType::integers},
       {"cats_strings", AttributeType::texts},
       {"zeros", AttributeType::integer}},
      infer_one_hot_encoder);
  add("DictVectorizer", {{1}},
      {{"int64_vocabulary", AttributeType::integers}, {"string_vocabulary", AttributeType::texts}},
      infer_dict_vectorizer);
  add("ZipMap", {{1}},
      {{"classlabels_int64s", AttributeType::integers},
       {"classlabels_strings", AttributeType::texts}},
      infer_zip_map);
}

}  // namespace graft

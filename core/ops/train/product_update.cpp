#include "core/ops/cost.h"
#include "core/ops/train/product_update_kernels.h"

namespace graft {
namespace {

constexpr std::string_view kUpdate = "Update";
constexpr int kGradient = 1;

bool flag(const Attributes& attributes, const char* name) {
  return attributes.get_int(name, 0) != 0;
}

void infer_product_update(InferContext& context) {
  const int last = context.input_count() - 1;
  infer_states(context);
  context.require_same_dtype({0, kGradient, last});
  std::vector<Shape> known;
  for (const int i : {kGradient, last, 0}) {
    context.require_rank(i, i == 0 ? 1 : 2, 2);
    auto shape = context.shape(i) == nullptr ? std::nullopt : context.shape(i)->known();
    if (!shape) return;
    known.push_back(*std::move(shape));
  }
  const int a_rows = flag(context.attributes(), "transA") ? 1 : 0;
  const int b_rows = flag(context.attributes(), "transB") ? 1 : 0;
  Shape product{known[0][a_rows], known[1][1 - b_rows]};
  if (known[2].rank() == 1 && product[0] == 1) product = {product[1]};
  if (known[0][1 - a_rows] != known[1][b_rows] || product != known[2]) {
    context.fail(ErrorKind::shape, "the product of ", known[0], " and ", known[1],
                 ", transposed as wanted, does not fit a parameter ", known[2]);
  }
}

/// Those of a' b'.
std::optional<std::int64_t> product_update_multiply_adds(const Node& node) {
  const std::optional<Shape> w = shape_if_known(node.input(0));
  const std::optional<Shape> a = shape_if_known(node.input(kGradient));
  if (!a || !w || a->rank() != 2) return std::nullopt;
  return checked_multiply(w->size(), (*a)[flag(node.attributes, "transA") ? 0 : 1]);
}

/// A matrix of as many elements.
Shape as_matrix(const Shape& shape) {
  constexpr std::int64_t kRows = 200;
  if (shape.rank() == 2) return shape;
  return shape.size() % kRows == 0 ? Shape{kRows, shape.size() / kRows} : Shape{1, shape.size()};
}

struct SampleProduct {
  std::string_view name;
  Shape result;
  std::int64_t inner;
  bool transposes_a = false;
  bool transposes_b = false;
};

/// The sample of an update with this product as gradient.
Sample with_product(Sample sample, const SampleProduct& product, std::size_t input_count) {
  const Shape old = sample.inputs[kGradient].shape;
  for (SampleInput& input : sample.inputs) {
    if (input.shape == old) input.shape = product.result;
  }
  const auto operand = [](std::int64_t rows, std::int64_t columns, bool is_transposed) {
    return SampleInput{.shape = is_transposed ? Shape{columns, rows} : Shape{rows, columns}};
  };
  sample.inputs.resize(input_count, absent());
  sample.inputs[kGradient] = operand(product.result[0], product.inner, product.transposes_a);
  sample.inputs.push_back(operand(product.inner, product.result[1], product.transposes_b));
  // Some updates square what was rounded in sums of many terms.
  constexpr std::int64_t kManyTerms = 100;
  if (product.inner > kManyTerms) sample.absolute *= 10;
  if (product.transposes_a) sample.attributes.set({"transA", 1});
  if (product.transposes_b) sample.attributes.set({"transB", 1});
  return sample;
}

std::vector<SampleProduct> sample_products() {
  return {{"no_transpose", {3, 7}, 5},
          {"trans_b", {3, 7}, 5, false, true},
          {"trans_both", {9, 2}, 5, true, true},
          {"one_inner", {33, 19}, 1, true},
          {"one_inner_trans_b", {6, 5}, 1, false, true},
          {"few_inner", {300, 200}, 3, true},
          {"many_inner", {19, 23}, 301, true},
          {"no_inner", {2, 3}, 0},
          {"no_rows", {0, 3}, 4},
          {"many_pieces", {173, 1190}, 45, true},
          {"wide", {3, 70001}, 2}};
}

}  // namespace

bool only_adds(const Node& update) {
  const ProductForm& form = OpRegistry::instance().get(update).product_form;
  return form.only_adds != nullptr && form.only_adds(update);
}

std::string product_form_name(std::string_view update) {
  return std::string(update.substr(0, update.size() - kUpdate.size())) + "ProductUpdate";
}

std::vector<std::string_view> product_forms() {
  std::vector<std::string_view> names;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (!def.product_form.op.empty()) names.push_back(def.product_form.op);
  }
  return names;
}

OpDef product_form(const OpDef& update, std::string_view name, Samples samples) {
  OpDef def = update;
  def.name = name;
  def.inputs[kGradient].name = "a";
  def.inputs.push_back({"b"});
  def.attributes.push_back({"transA", AttributeType::integer});
  def.attributes.push_back({"transB", AttributeType::integer});
  def.attributes.push_back({"scale", AttributeType::number});
  def.infer = infer_product_update;
  def.multiply_adds = product_update_multiply_adds;
  def.product_form.op = "";
  def.lower = nullptr;
  def.samples = samples;
  return def;
}

std::vector<Sample> with_products(const std::vector<Sample>& update, std::size_t input_count) {
  constexpr std::int64_t kInner = 5;
  std::vector<Sample> samples;
  for (const Sample& sample : update) {
    const SampleInput& gradient = sample.inputs[kGradient];
    if (gradient.dtype == DType::bf16) continue;  // operands are of the parameter's type
    samples.push_back(
        with_product(sample, {sample.name, as_matrix(gradient.shape), kInner, true}, input_count));
  }
  for (const SampleProduct& product : sample_products()) {
    samples.push_back(with_product(update.front(), product, input_count));
    samples.back().name = product.name;
  }
  Sample vector = with_product(update.front(), {"vector", {1, 37}, 29, true}, input_count);
  vector.name = "vector";
  for (SampleInput& input : vector.inputs) {
    if (input.shape == Shape{1, 37}) input.shape = {37};
  }
  samples.push_back(std::move(vector));
  samples.push_back(samples.front());
  samples.back().name = "scale";
  samples.back().attributes.set({"scale", 0.5F});
  return samples;
}

}  // namespace graft

#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

/// From the attribute output_datatype.
DType table_type(const InferContext& context) {
  const std::int64_t number = context.attributes().get_int("output_datatype", 1);
  const bool is_known =
      number >= 0 && number <= kMostPerAxis && is_known_dtype(static_cast<int>(number));
  const auto dtype = is_known ? static_cast<DType>(number) : DType::undefined;
  if (!is_float(dtype) && !is_integer(dtype)) {
    context.fail(ErrorKind::type, "output_datatype is ", number, ", wanted a numeric type");
  }
  return dtype;
}

void infer_window(InferContext& context) {
  const DType dtype = table_type(context);
  const auto size = known_size(context, 0, 0, kMostPerAxis);
  context.set_output(0, dtype, SymShape{size ? Dim(*size) : Dim()});
}

void infer_mel(InferContext& context) {
  const DType dtype = table_type(context);
  const auto length = known_size(context, 1, 0, kMostPerAxis);
  const auto bands = known_size(context, 0, 0, kMostPerAxis);
  known_size(context, 2, 0, kMostPerAxis);
  context.set_output(0, dtype,
                     SymShape{length ? Dim(*length / 2 + 1) : Dim(), bands ? Dim(*bands) : Dim()});
}

std::vector<Sample> window_samples() {
  return {
      {"periodic", {constant_number(10)}},
      {"symmetric", {constant_number(11)}, {{"periodic", 0}}},
      {"one", {constant_number(1)}, {{"periodic", 0}}},
      {"empty", {constant_number(0)}},
      {"f64", {constant_number(6, DType::i32)}, {{"output_datatype", 11}}},
      {"f16", {constant_number(6)}, {{"output_datatype", 10}}},
  };
}

std::vector<Sample> mel_samples() {
  const auto hertz = [](double value) { return constant_number(value, DType::f32); };
  return {
      {"plain",
       {constant_number(8), constant_number(16), constant_number(8192), hertz(0), hertz(4096)}},
      {"narrow",
       {constant_number(3), constant_number(64), constant_number(16000), hertz(300.5),
        hertz(2000)}},
      {"beyond_the_spectrum",
       {constant_number(4), constant_number(32), constant_number(8000), hertz(0), hertz(20000)}},
      {"no_band",
       {constant_number(0), constant_number(16), constant_number(8192), hertz(0), hertz(4096)}},
  };
}

OpDef window(std::string_view name) {
  return {.name = name,
          .since = {{17}},
          .inputs = {{"size"}},
          .outputs = {{"output"}},
          .attributes = {{"output_datatype", AttributeType::integer},
                         {"periodic", AttributeType::integer}},
          .infer = infer_window,
          .backward = NotDifferentiable{"a window depends on its length alone"},
          .samples = window_samples};
}

}  // namespace

/// HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: tables that depend on a few
/// numbers, which must be known before the run.
void register_audio_tables(OpRegistry& registry) {
  registry.add(window("HannWindow"));
  registry.add(window("HammingWindow"));
  registry.add(window("BlackmanWindow"));
  registry.add(
      {.name = "MelWeightMatrix",
       .since = {{17}},
       .inputs = {{"num_mel_bins"},
                  {"dft_length"},
                  {"sample_rate"},
                  {"lower_edge_hertz"},
                  {"upper_edge_hertz"}},
       .outputs = {{"output"}},
       .attributes = {{"output_datatype", AttributeType::integer}},
       .infer = infer_mel,
       .backward = NotDifferentiable{"its edges are rounded to whole bins of the spectrum"},
       .samples = mel_samples});
}

}  // namespace graft

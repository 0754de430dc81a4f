#include "core/layers/older_forms.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/base/at.h"

// Settings that came later: where a node has the default, the setting goes; where the older form
// says the same in another way, it is written so; all else is refused.

namespace graft::edit {

void OlderForm::refuse(const std::string& what) const {
  fail(ErrorKind::unsupported, node.label(), ": opset ", version, " lacks ", what);
}

Expr OlderForm::input(int index) const {
  Value* const value = node.input(index);
  return value == nullptr ? Expr() : builder.expr(value);
}

void OlderForm::drop_default(std::string_view attribute, std::int64_t wanted) const {
  const std::int64_t found = node.attributes.get_int(attribute, wanted);
  if (found != wanted) refuse(text(attribute, " = ", found));
  node.attributes.erase(attribute);
}

void OlderForm::drop_default(std::string_view attribute, std::string_view wanted) const {
  const std::string found = node.attributes.get_string(attribute, std::string(wanted));
  if (found != wanted) refuse(text(attribute, " = ", found));
  node.attributes.erase(attribute);
}

std::vector<std::int64_t> OlderForm::take_integers(int index, const std::string& what) const {
  const Value* const value = node.input(index);
  if (!value->is_initializer()) refuse(what + " that are computed ('" + value->name() + "')");
  const auto numbers = value->initializer().cast(DType::i64);
  const auto elements = numbers.values<const std::int64_t>();
  node.set_input(index, nullptr);
  node.trim_inputs();
  return {elements.begin(), elements.end()};
}

namespace {

using Results = std::vector<Expr>;

/// A rule for one setting that has to have its default.
template <const char* kName, std::int64_t kDefault>
Results without(const OlderForm& form) {
  form.drop_default(kName, kDefault);
  return {};
}

int rank_of(const OlderForm& form) {
  const Value* const value = form.node.input(0);
  if (!value->shape()) form.refuse("axes for a value of unknown rank");
  return value->shape()->rank();
}

/// From opset 18 on, the axes of reductions are an input.
Results axes_to_attribute(const OlderForm& form) {
  Node& node = form.node;
  const bool reduces_none =
      node.input(1) == nullptr && node.attributes.get_int("noop_with_empty_axes", 0) != 0;
  if (reduces_none) form.refuse("noop_with_empty_axes = 1");
  if (node.input(1) != nullptr) {
    const std::vector<std::int64_t> axes = form.take_integers(1, "axes");
    if (axes.empty() && node.attributes.get_int("noop_with_empty_axes", 0) != 0) {
      return {call("Identity", {form.input(0)})};
    }
    if (!axes.empty()) node.attributes.set({"axes", axes});
  }
  node.attributes.erase("noop_with_empty_axes");
  return {};
}

Results no_booleans(const OlderForm& form) {
  if (form.node.input(0)->dtype() == DType::boolean) form.refuse("it for truth values");
  return {};
}

/// A target with zeros means other things by allowzero; one that is computed has zeros for empty
/// tensors only.
Results without_allowzero(const OlderForm& form) {
  Node& node = form.node;
  if (node.attributes.get_int("allowzero", 0) != 0 && node.input(1)->is_initializer()) {
    const auto dims = node.input(1)->initializer().values<const std::int64_t>();
    if (std::ranges::count(dims, 0) != 0) form.refuse("allowzero = 1 for a target with a 0");
  }
  node.attributes.erase("allowzero");
  return {};
}

/// Shape, then a slice of it.
Results whole_shape(const OlderForm& form) {
  Attributes& attributes = form.node.attributes;
  const std::int64_t start = attributes.get_int("start", 0);
  if (start == 0 && !attributes.has("end")) {
    attributes.erase("start");
    return {};
  }
  const std::int64_t end = attributes.get_int("end", std::numeric_limits<std::int64_t>::max());
  return {call("Slice", {call("Shape", {form.input(0)}), constant_ints(form.builder, {start}),
                         constant_ints(form.builder, {end})})};
}

/// Parts of one size, the last of what is left.
Results split_sizes(const OlderForm& form) {
  Node& node = form.node;
  if (node.attributes.has("num_outputs") && node.input(1) == nullptr) {
    const auto parts = static_cast<std::int64_t>(node.output_count());
    const int rank = rank_of(form);
    const int axis = normalize_axis(node.attributes.get_int("axis", 0), rank, node.label());
    const Dim& dim = (*node.input(0)->shape())[axis];
    if (dim.is_known() && dim.value() % parts != 0) {
      const std::int64_t size = dim.value() / parts + 1;
      std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts) - 1, size);
      sizes.push_back(dim.value() - size * (parts - 1));
      node.set_input(1, constant_ints(form.builder, sizes).value());
    }
  }
  node.attributes.erase("num_outputs");
  return {};
}

/// Pads of all axes, where some are named.
Results pads_of_all_axes(const OlderForm& form) {
  Node& node = form.node;
  if (node.input(3) == nullptr) return {};
  const int rank = rank_of(form);
  const std::vector<std::int64_t> axes = form.take_integers(3, "axes");
  const Value* const pads = node.input(1);
  if (!pads->is_initializer()) form.refuse("axes beside pads that are computed");
  const auto given = pads->initializer().values<const std::int64_t>();
  if (given.size() != 2 * axes.size()) {
    form.refuse(text(given.size(), " pads for ", axes.size(), " axes"));
  }
  const auto count = static_cast<std::size_t>(rank);
  std::vector<std::int64_t> all(2 * count, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(normalize_axis(axes[i], rank, node.label()));
    all[axis] = given[i];
    all[count + axis] = given[axes.size() + i];
  }
  node.set_input(1, constant_ints(form.builder, all).value());
  return {};
}

Results without_wrap(const OlderForm& form) {
  if (form.node.attributes.get_string("mode", "constant") == "wrap") form.refuse("mode = wrap");
  return {};
}

/// Scales or sizes of all axes, where some are named.
Results resize_of_all_axes(const OlderForm& form) {
  Node& node = form.node;
  form.drop_default("antialias", 0);
  form.drop_default("keep_aspect_ratio_policy", "stretch");
  if (!node.attributes.has("axes")) return {};
  const int rank = rank_of(form);
  const std::vector<std::int64_t> axes = node.attributes.get_ints("axes");
  const bool by_scales = node.input(2) != nullptr;
  const Value* const given = node.input(by_scales ? 2 : 3);
  if (given == nullptr || !given->is_initializer())
    form.refuse("axes beside sizes that are computed");
  if (node.input(1) != nullptr) form.refuse("axes beside a region of interest");
  const std::vector<double> numbers = to_double(given->initializer());
  if (numbers.size() != axes.size() || rank == 0) {
    form.refuse(text(numbers.size(), " sizes for ", axes.size(), " axes"));
  }
  std::vector<double> all(static_cast<std::size_t>(rank), 1);
  for (int axis = 0; axis < rank && !by_scales; ++axis) {
    const Dim& dim = (*node.input(0)->shape())[axis];
    const bool is_named = std::ranges::any_of(
        axes, [&](std::int64_t each) { return normalize_axis(each, rank, node.label()) == axis; });
    if (!dim.is_known() && !is_named) form.refuse("axes beside dims that are not known");
    if (dim.is_known()) at(all, axis) = static_cast<double>(dim.value());
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    at(all, normalize_axis(axes[i], rank, node.label())) = numbers[i];
  }
  const Tensor whole = Tensor::from(Shape{rank}, all).cast(by_scales ? DType::f32 : DType::i64);
  node.set_input(by_scales ? 2 : 3, form.builder.constant(whole));
  node.attributes.erase("axes");
  return {};
}

Results without_symmetric_pixels(const OlderForm& form) {
  constexpr std::string_view kName = "coordinate_transformation_mode";
  if (form.node.attributes.get_string(kName, "half_pixel") == "half_pixel_symmetric") {
    form.refuse("half_pixel_symmetric");
  }
  return {};
}

Results without_extremes(const OlderForm& form) {
  const std::string reduction = form.node.attributes.get_string("reduction", "none");
  if (reduction == "max" || reduction == "min") form.refuse("reduction = " + reduction);
  return {};
}

Results without_dilations(const OlderForm& form) {
  const std::vector<std::int64_t> dilations = form.node.attributes.get_ints("dilations");
  if (std::ranges::any_of(dilations, [](std::int64_t each) { return each != 1; })) {
    form.refuse("dilations");
  }
  form.node.attributes.erase("dilations");
  return {};
}

Results lp_pool(const OlderForm& form) {
  form.drop_default("ceil_mode", 0);
  return without_dilations(form);
}

/// The modes had other names, and there were no volumes.
Results grid_modes(const OlderForm& form) {
  if (rank_of(form) != 4) form.refuse("samples of volumes");
  const std::string mode = form.node.attributes.get_string("mode", "linear");
  const bool is_nearest = mode == "nearest";
  const bool is_cubic = mode == "cubic";
  form.node.attributes.set({"mode", is_nearest ? "nearest" : is_cubic ? "bicubic" : "bilinear"});
  return {};
}

Results old_roi_pixels(const OlderForm& form) {
  constexpr std::string_view kName = "coordinate_transformation_mode";
  if (form.node.attributes.get_string(kName, "half_pixel") != "output_half_pixel") {
    form.refuse("coordinate_transformation_mode = half_pixel");
  }
  form.node.attributes.erase(kName);
  return {};
}

/// Blocks, and integers of 4 and 16 bits.
Results quantized_by_bytes(const OlderForm& form) {
  for (const char* attribute : {"block_size", "output_dtype", "precision"}) {
    form.drop_default(attribute, 0);
  }
  const Value* const zero = form.node.input(2);
  const DType type = form.node.is("QuantizeLinear") ? (zero == nullptr ? DType::u8 : zero->dtype())
                                                    : form.node.input(0)->dtype();
  if (type != DType::i8 && type != DType::u8 && type != DType::i32) {
    form.refuse(text("quantization to ", name(type)));
  }
  return {};
}

Results quantized_in_order(const OlderForm& form) {
  form.node.attributes.erase("saturate");
  const DType scale = form.node.input(1)->dtype();
  if (scale != DType::f32) form.refuse(text("scales of ", name(scale)));
  return {};
}

/// Rounding to float 8, which an older form does not have anyway.
Results cast_settings(const OlderForm& form) {
  form.node.attributes.erase("saturate");
  form.node.attributes.erase("round_mode");
  return {};
}

Results mod_of_floats(const OlderForm& form) {
  const bool is_fmod = form.node.attributes.get_int("fmod", 0) != 0;
  if (!is_fmod && is_float(form.node.input(0)->dtype())) form.refuse("fmod = 0 for floats");
  return {};
}

constexpr char kLayout[] = "layout";
constexpr char kTrainingMode[] = "training_mode";
constexpr char kStashType[] = "stash_type";

Results range_in_its_type(const OlderForm& form) {
  form.node.attributes.erase(kStashType);
  return {};
}

Results depth_first(const OlderForm& form) {
  form.drop_default("mode", "DCR");
  return {};
}

Results without_windows(const OlderForm& form) {
  form.drop_default("left_window_size", -1);
  form.drop_default("right_window_size", -1);
  return {};
}

Results without_lengths(const OlderForm& form) {
  constexpr int kLengths = 6;
  if (form.node.input(kLengths) != nullptr) form.refuse("nonpad_kv_seqlen");
  return {};
}

constexpr std::array kSettings{
    OlderFormRule{"SpaceToDepth", 28, depth_first},
    OlderFormRule{"Mod", 28, mod_of_floats},
    OlderFormRule{"Range", 27, range_in_its_type},
    OlderFormRule{"GroupNormalization", 21, group_norm_by_channel},
    OlderFormRule{"QuantizeLinear", 21, quantized_by_bytes},
    OlderFormRule{"DequantizeLinear", 21, quantized_by_bytes},
    OlderFormRule{"Attention", 25, without_windows},
    OlderFormRule{"Attention", 24, without_lengths},
    OlderFormRule{"GridSample", 20, grid_modes},
    OlderFormRule{"ReduceMax", 20, no_booleans},
    OlderFormRule{"ReduceMin", 20, no_booleans},
    OlderFormRule{"QuantizeLinear", 19, quantized_in_order},
    OlderFormRule{"DequantizeLinear", 19, quantized_in_order},
    OlderFormRule{"Cast", 19, cast_settings},
    OlderFormRule{"Resize", 19, without_symmetric_pixels},
    OlderFormRule{"Pad", 19, without_wrap},
    OlderFormRule{"AveragePool", 19, without_dilations},
    OlderFormRule{"LpPool", 18, lp_pool},
    OlderFormRule{"Resize", 18, resize_of_all_axes},
    OlderFormRule{"Pad", 18, pads_of_all_axes},
    OlderFormRule{"Split", 18, split_sizes},
    OlderFormRule{"ScatterElements", 18, without_extremes},
    OlderFormRule{"ScatterND", 18, without_extremes},
    OlderFormRule{"ReduceL1", 18, axes_to_attribute},
    OlderFormRule{"ReduceL2", 18, axes_to_attribute},
    OlderFormRule{"ReduceLogSum", 18, axes_to_attribute},
    OlderFormRule{"ReduceLogSumExp", 18, axes_to_attribute},
    OlderFormRule{"ReduceMax", 18, axes_to_attribute},
    OlderFormRule{"ReduceMean", 18, axes_to_attribute},
    OlderFormRule{"ReduceMin", 18, axes_to_attribute},
    OlderFormRule{"ReduceProd", 18, axes_to_attribute},
    OlderFormRule{"ReduceSumSquare", 18, axes_to_attribute},
    OlderFormRule{"ScatterElements", 16, scatter_without_reduction},
    OlderFormRule{"ScatterND", 16, scatter_without_reduction},
    OlderFormRule{"RoiAlign", 16, old_roi_pixels},
    OlderFormRule{"Shape", 15, whole_shape},
    OlderFormRule{"BatchNormalization", 14, without<kTrainingMode, 0>},
    OlderFormRule{"LSTM", 14, without<kLayout, 0>},
    OlderFormRule{"GRU", 14, without<kLayout, 0>},
    OlderFormRule{"RNN", 14, without<kLayout, 0>},
    OlderFormRule{"Reshape", 14, without_allowzero},
};

}  // namespace

std::span<const OlderFormRule> setting_rules() {
  return kSettings;
}

}  // namespace graft::edit

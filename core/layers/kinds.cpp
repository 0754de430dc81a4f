#include "core/layers/kinds.h"

#include <algorithm>

namespace graft {
namespace layers {

const SymShape& shape_of(std::string_view who, const Value& input, int least, int most) {
  if (!input.shape()) {
    fail(ErrorKind::shape, who, ": the shape of '", input.name(),
         "' is not known; give the model's inputs their shapes");
  }
  const int rank = input.shape()->rank();
  if (rank < least || rank > most) {
    fail(ErrorKind::shape, who, ": '", input.name(), "' is ", input.type(), ", wanted rank ", least,
         least == most ? std::string() : text(" to ", most));
  }
  return *input.shape();
}

std::int64_t features_of(std::string_view who, const Value& input, int axis) {
  const SymShape& shape = *input.shape();
  const Dim& dim = shape[axis < 0 ? axis + shape.rank() : axis];
  if (!dim.is_known() || dim.value() == 0) {
    fail(ErrorKind::shape, who, ": '", input.name(), "' is ", input.type(), ", but its dim ", axis,
         " must be a known number of features; give the model's inputs fixed sizes, all but the "
         "batch, or put a pooling to a fixed size before");
  }
  return dim.value();
}

void require_at_least(std::string_view who, std::string_view field, std::int64_t number,
                      std::int64_t least) {
  if (number < least) {
    fail(ErrorKind::argument, who, ": ", field, " is ", number, ", wanted at least ", least);
  }
}

void require_within(std::string_view who, std::string_view field, double number, double least,
                    double most) {
  if (number >= least && number <= most) return;
  const bool has_least = least > std::numeric_limits<double>::lowest();
  const bool has_most = most < std::numeric_limits<double>::max();
  fail(ErrorKind::argument, who, ": ", field, " is ", number, ", wanted a finite number",
       has_least ? text(has_most ? " from " : " of at least ", least) : std::string(),
       has_most ? text(" to ", most) : std::string());
}

std::vector<std::int64_t> per_dim(std::string_view who, std::string_view field,
                                  const std::vector<std::int64_t>& numbers, int dims,
                                  std::int64_t least) {
  const auto count = static_cast<std::size_t>(dims);
  if (numbers.size() != 1 && numbers.size() != count) {
    fail(ErrorKind::argument, who, ": ", field, " has ", numbers.size(), " numbers, wanted 1 or ",
         dims, ", one a spatial dim");
  }
  for (const std::int64_t number : numbers) require_at_least(who, field, number, least);
  return numbers.size() == count ? numbers : std::vector(count, numbers[0]);
}

Attributes window(std::string_view who, int dims, const std::vector<std::int64_t>& kernel,
                  const std::vector<std::int64_t>& stride,
                  const std::vector<std::int64_t>& padding) {
  std::vector<std::int64_t> pads = per_dim(who, "padding", padding, dims, 0);
  pads.insert(pads.end(), pads.begin(), pads.begin() + dims);
  return {{"kernel_shape", per_dim(who, "kernel", kernel, dims, 1)},
          {"strides", per_dim(who, "stride", stride.empty() ? kernel : stride, dims, 1)},
          {"pads", pads}};
}

namespace {

/// Broadcasting would hide that the branches do not fit.
void require_same_shape(const std::string& name, const Value& body, const Value& shortcut) {
  bool fits = body.shape().has_value() && shortcut.shape().has_value() &&
              body.shape()->rank() == shortcut.shape()->rank();
  for (int axis = 0; fits && axis < body.shape()->rank(); ++axis) {
    const Dim& a = (*body.shape())[axis];
    const Dim& b = (*shortcut.shape())[axis];
    fits = !a.is_known() || !b.is_known() || a.value() == b.value();
  }
  if (!fits) {
    fail(ErrorKind::shape, "residual '", name, "': the body gives ", body.type(), ", the shortcut ",
         shortcut.type(),
         "; both must have one shape: a shortcut of a 1x1 convolution can change it");
  }
}

}  // namespace

Value* add(LayerContext& context, const Residual& layer, Value* input) {
  const std::string name = context.name("residual", layer.name);
  if (layer.body.empty()) {
    fail(ErrorKind::argument, "residual '", name, "': the body has no layers");
  }
  Value* const body = add_layers(context, layer.body, input);
  Value* const shortcut = add_layers(context, layer.shortcut, input);
  require_same_shape(name, *body, *shortcut);
  return context.node("Add", {body, shortcut}, name);
}

}  // namespace layers

Value* add_layer(LayerContext& context, const Layer& layer, Value* input) {
  if (!is_float(input->dtype()) && !std::holds_alternative<Embedding>(layer)) {
    fail(ErrorKind::type, "layers compute with floating-point numbers, but '", input->name(),
         "' is ", input->type());
  }
  return std::visit([&](const auto& kind) { return layers::add(context, kind, input); },
                    static_cast<const AnyLayer&>(layer));
}

Value* add_layers(LayerContext& context, const std::vector<Layer>& layers, Value* input) {
  for (const Layer& layer : layers) input = add_layer(context, layer, input);
  return input;
}

}  // namespace graft

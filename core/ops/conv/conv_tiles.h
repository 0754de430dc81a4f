#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "core/ops/conv/conv_rows.h"
#include "core/ops/registry.h"

namespace graft {

// Convolutions of f32 rows of channels by tiles of sums in registers, over what meets: padding
// costs nothing.

enum class TilesUse {
  where_fastest,  ///< empty where oneDNN's convolutions are as fast
  anywhere,       ///< where there is no oneDNN; operands in row-major order are copied
};

/// Whether they lie so that tiles are asked. Anywhere: in any order, so that a convolution has the
/// same bits whatever stands around it.
inline bool takes_layouts(std::initializer_list<TensorSpec> images, TilesUse use) {
  return std::ranges::all_of(images, [&](const TensorSpec& image) {
    if (image.dtype == DType::undefined) return true;
    return use == TilesUse::anywhere ? image.dtype == DType::f32 : lies_in_rows(image);
  });
}

/// Of Conv or ConvClamp, and of ConvInputGrad.
Kernel make_conv_by_tiles(KernelRequest& request, TilesUse use);
Kernel make_conv_input_grad_by_tiles(KernelRequest& request, TilesUse use);
/// Of ConvWeightGrad.
Kernel make_conv_weight_grad_by_tiles(KernelRequest& request, TilesUse use);
/// The same as a product by panels, without padding, where these are fastest.
Kernel make_conv_weight_grad_by_rows(KernelRequest& request);
/// The same of bf16, by tiles of its own (bf16_product.h). Empty where oneDNN is as fast, and where
/// f32 is.
Kernel make_bf16_conv_weight_grad(KernelRequest& request);
/// The same with what each tap meets gathered for it: for few outputs.
Kernel make_gathered_conv_weight_grad(KernelRequest& request, TilesUse use);
/// The same of f32, in parts (adr/0086), where tiles of sums in registers are fastest otherwise and
/// channels fill the processor's.
Kernel make_conv_weight_grad_by_parts(KernelRequest& request);

/// Of Conv or ConvClamp, of ConvInputGrad and of ConvWeightGrad, of 3 x 3 taps, by fewer products
/// (winograd.h).
Kernel make_conv_by_winograd(KernelRequest& request);
Kernel make_conv_input_grad_by_winograd(KernelRequest& request);
Kernel make_conv_weight_grad_by_winograd(KernelRequest& request);

/// Of Conv and of ConvInputGrad, of bf16 and of small images, by tiles (bf16_product.h).
Kernel make_bf16_conv(KernelRequest& request);
Kernel make_bf16_conv_input_grad(KernelRequest& request);

template <TilesUse use>
void register_conv_by_tiles(KernelRegistry& registry, std::string_view name) {
  const auto add = [&](std::string_view op, std::string_view domain, KernelFactory make) {
    registry.add({.op = op, .domain = domain, .name = name, .make = make, .knows_layouts = true});
  };
  constexpr KernelFactory kConv = [](KernelRequest& r) { return make_conv_by_tiles(r, use); };
  add("Conv", "", kConv);
  add("ConvClamp", kInternalDomain, kConv);
  add("ConvInputGrad", kInternalDomain,
      [](KernelRequest& r) { return make_conv_input_grad_by_tiles(r, use); });
  add("ConvWeightGrad", kInternalDomain,
      [](KernelRequest& r) { return make_conv_weight_grad_by_tiles(r, use); });
}

}  // namespace graft

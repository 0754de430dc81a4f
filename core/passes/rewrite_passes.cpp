// Alone, so that who runs one of these passes need not link all.
#include "core/passes/rewrite_passes.h"

#include <array>

namespace graft::passes {
namespace {

constexpr std::array kPasses{
    RewritePass{"fold_padding", fold_padding_rewrites},
    RewritePass{"fold_batch_norm", fold_batch_norm_rewrites},
    RewritePass{"fuse_layer_norm", fuse_layer_norm_rewrites},
    RewritePass{"name_activations", name_activations_rewrites},
    RewritePass{"pool_before_relu", pool_before_relu_rewrites},
    RewritePass{"fuse_pools", fuse_pools_rewrites},
    RewritePass{"keep_argmax", keep_argmax_rewrites},
    RewritePass{"split_stacks", split_stacks_rewrites},
    RewritePass{"add_in_products", add_in_products_rewrites},
    RewritePass{"clamp_convolutions", clamp_convolutions_rewrites},
    RewritePass{"fuse_activations", fuse_activations_rewrites},
    RewritePass{"fuse_feed_forward", fuse_feed_forward_rewrites},
    RewritePass{"fuse_product_updates", fuse_product_updates_rewrites},
    RewritePass{"fuse_attention", fuse_attention_rewrites},
    RewritePass{"skip_row_transposes", skip_row_transposes_rewrites},
};

}  // namespace

std::span<const RewritePass> rewrite_passes() {
  return kPasses;
}

}  // namespace graft::passes

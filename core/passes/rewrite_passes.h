#pragma once

#include <span>
#include <string_view>

#include "core/passes/rewrite.h"

namespace graft::passes {

/// The rewrites of one pass.
struct RewritePass {
  std::string_view name;
  std::span<const Rewrite> (*rewrites)();
};

/// Every pass that consists of rewrites.
std::span<const RewritePass> rewrite_passes();

// Those passes' rewrites, by the names of the passes.
std::span<const Rewrite> fold_padding_rewrites();
std::span<const Rewrite> fold_batch_norm_rewrites();
std::span<const Rewrite> fuse_layer_norm_rewrites();
std::span<const Rewrite> name_activations_rewrites();
std::span<const Rewrite> pool_before_relu_rewrites();
std::span<const Rewrite> fuse_pools_rewrites();
std::span<const Rewrite> keep_argmax_rewrites();
std::span<const Rewrite> split_stacks_rewrites();
std::span<const Rewrite> add_in_products_rewrites();
std::span<const Rewrite> clamp_convolutions_rewrites();
std::span<const Rewrite> fuse_activations_rewrites();
std::span<const Rewrite> fuse_feed_forward_rewrites();
std::span<const Rewrite> fuse_product_updates_rewrites();
std::span<const Rewrite> fuse_attention_rewrites();
std::span<const Rewrite> skip_row_transposes_rewrites();

}  // namespace graft::passes

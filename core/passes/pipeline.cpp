// The lists say what runs when; below them stands what runs them. What a pass does is said in
// pass.h, and each has a file of its name.
#include "core/passes/pipeline.h"

#include <array>
#include <chrono>
#include <type_traits>

#include "core/base/limits.h"
#include "core/base/time_limit.h"
#include "core/graph/verify.h"
#include "core/ops/registry.h"
#include "core/passes/chosen_internal.h"
#include "core/passes/draw_masks.h"
#include "core/passes/order_nodes.h"
#include "core/passes/pass.h"
#include "core/passes/pass_watch.h"
#include "core/passes/unroll_recurrent.h"

namespace graft::passes {
namespace {

/// A pass as a list holds it, whether it wants a device or not.
template <auto kPass>
bool on(Graph& graph, PassContext& context) {
  if constexpr (std::is_invocable_v<decltype(kPass), Graph&, Device&>) {
    return kPass(graph, context.device);
  } else {
    return kPass(graph);
  }
}

/// A pass for the CPU alone: cards take updates together, so there they stay at the end.
template <auto kPass>
bool on_cpu(Graph& graph, PassContext& context) {
  return context.device.kind() == DeviceKind::cpu && on<kPass>(graph, context);
}

/// A pass for cards alone, where a launch costs as much as a small kernel.
template <auto kPass>
bool on_cards(Graph& graph, PassContext& context) {
  return context.device.kind() != DeviceKind::cpu && on<kPass>(graph, context);
}

/// A list as a pass of another.
template <const Pipeline& kPipeline>
bool all(Graph& graph, PassContext& context) {
  return run_passes(kPipeline, graph, context);
}

/// A pass without which the same is computed, but slower. In a build for certain models
/// (GRAFT_MODELS) it has no function unless it changed one of them, and then is not linked.
constexpr Pass faster(Pass pass) {
  if (!is_chosen(pass.name)) pass.run = nullptr;
  return pass;
}

bool upgrade(Graph& /*graph*/, PassContext& context) {
  return upgrade_opset(*context.model);
}

bool bind(Graph& graph, PassContext& context) {
  bind_inputs(graph, context.input_types);
  return true;
}

bool train(Graph& graph, PassContext& context) {
  return train_mode(graph, context.seed, context.frozen);
}

constexpr auto kForInference = Purpose::inference;
constexpr auto kForTraining = Purpose::training;

constexpr Pass kNewestFormPasses[] = {
    {"upgrade_opset", upgrade},
    {"inference_mode", on<inference_mode>, kForInference},
    {"infer_shapes", on<infer_shapes>, kForTraining},
};

constexpr Pass kSettlePasses[] = {
    {"infer_shapes", on<infer_shapes>},
    {"fold_constants", on<fold_inferred_constants>},
    {.name = "choose_branches", .run = on<choose_branches>, .restarts = true},
    {"eliminate_dead", on<eliminate_dead>},
};

constexpr Pass kBoundPasses[] = {
    {"bind_inputs", bind},
    {"settle", all<kSettle>},
};

constexpr Pass kUnrolledPasses[] = {
    {"settle", all<kSettle>},
    {.name = "unroll_loops", .run = on<unroll_loops>, .restarts = true},
};

constexpr Pass kStepShapesPasses[] = {
    {"bind_inputs", bind},
    {"unrolled", all<kUnrolled>},
};

constexpr Pass kOpenGradientPathPasses[] = {
    {"infer_shapes", on<infer_shapes>},
    {.name = "choose_branches", .run = on<choose_branches>, .restarts = true},
    {.name = "unroll_loops", .run = on<unroll_loops>, .restarts = true},
};

constexpr Pass kOutputTypesPasses[] = {
    {"upgrade_opset", upgrade},
    {"settle", all<kSettle>},
};

// Not settled: what only a Gradient op names looks dead before it is lowered.
constexpr Pass kGradientModelPasses[] = {
    {"upgrade_opset", upgrade},         {"bind_inputs", bind},
    {"infer_shapes", on<infer_shapes>}, {"fold_constants", on<fold_inferred_constants>},
    {"decompose", on<decompose>},
};

constexpr Pass kForwardPasses[] = {
    faster({"split_stacks", on<split_stacks>}),
    faster({.name = "fuse_attention", .run = on<fuse_attention>, .makes = "TiledAttention"}),
    faster({"skip_row_transposes", on<skip_row_transposes>}),
    faster({"fuse_layer_norm", on<fuse_layer_norm>}),
    faster({"name_activations", on<name_activations>}),
    faster({"pool_before_relu", on<pool_before_relu>, kForTraining}),
    {.name = "compute_in_bf16", .run = on<compute_in_bf16>, .precision = Precision::bf16},
    faster({.name = "fuse_feed_forward",
            .run = on<fuse_feed_forward>,
            .precision = Precision::f32,
            .makes = "FeedForward"}),
    faster({"add_in_products", on<add_in_products>, kForInference}),
    faster({"clamp_convolutions", on_cpu<clamp_convolutions>, kForInference}),
    faster({"pool_before_relu", on<pool_before_relu>, kForInference}),  // what none clamps
};

constexpr Pass kInferencePasses[] = {
    {"bind_inputs", bind},
    {"settle", all<kSettle>},
    {"decompose_where_needed", on<decompose_where_needed>},
    {.name = "settle", .run = all<kSettle>, .follows_change = true},
    faster({"fold_padding", on<fold_padding>}),
    faster({"fold_batch_norm", on<fold_batch_norm>}),
    {.name = "settle", .run = all<kSettle>, .follows_change = true},
    {"forward", all<kForward>},
    {.name = "settle", .run = all<kSettle>, .follows_change = true},
};

constexpr Pass kOneOpPasses[] = {
    {"decompose_where_needed", on<decompose_where_needed>},
    {"settle", all<kSettle>},
};

constexpr Pass kTrainingFormPasses[] = {
    {"train_mode", train, kForTraining},
    {"decompose", on<decompose>, kForTraining},
};

constexpr Pass kForwardWithLossPasses[] = {
    {"decompose", on<decompose>},
    {"forward", all<kForward>},
    faster({.name = "fuse_pools",
            .run = on_cards<fuse_pools>,
            .purpose = kForTraining,
            .makes = "MaxPoolWithArgmax"}),
    faster({.name = "keep_argmax",
            .run = on<keep_argmax>,
            .purpose = kForTraining,
            .makes = "MaxPoolWithArgmax"}),
};

constexpr Pass kWholeStepPasses[] = {
    {"settle", all<kSettle>},
    faster({"fuse_activations", on<fuse_activations>, kForTraining}),
    faster({"add_in_products", on<add_in_products>, kForTraining}),
    faster({.name = "fuse_product_updates",
            .run = on<fuse_product_updates>,
            .purpose = kForTraining,
            .makes = "SgdProductUpdate"}),
    {.name = "compute_in_tf32", .run = on<compute_in_tf32>, .precision = Precision::tf32},
};

constexpr Pass kExportedTrainingFormPasses[] = {
    {"train_mode", train, kForTraining},
    {"unroll_recurrent", on<unroll_recurrent>},
    {"decompose", on<decompose>, kForTraining},
};

// Other runtimes know none of our ops, so nothing is fused.
constexpr Pass kExportedForwardPasses[] = {
    {"decompose", on<decompose>},
};

// Not folded again: a constant takes the space of one number, what it spreads to is written as ops.
constexpr Pass kExportedStepPasses[] = {
    {"settle", all<kSettle>},
    {"draw_masks", on<draw_masks>},
    {"lower", on<lower>},
    {"eliminate_dead", on<eliminate_dead>},
    {"infer_shapes", on<infer_shapes>},
};

constexpr Pass kPlanningPasses[] = {
    faster({"choose_layouts", on<choose_layouts>}),
    faster({"fuse_addends", on<fuse_addends>}),
    faster({.name = "fuse_updates", .run = on<fuse_updates>, .makes = "UpdateChain"}),
    faster({.name = "fuse_chains", .run = on<fuse_chains>, .makes = "ElementwiseChain"}),
    faster({"move_updates", on_cpu<move_updates>}),
};

}  // namespace

constexpr Pipeline kNewestForm{"newest form", kNewestFormPasses};
constexpr Pipeline kSettle{"settle", kSettlePasses};
constexpr Pipeline kBound{"bound", kBoundPasses};
constexpr Pipeline kUnrolled{"unrolled", kUnrolledPasses};
constexpr Pipeline kStepShapes{"step shapes", kStepShapesPasses};
constexpr Pipeline kOpenGradientPath{"open gradient path", kOpenGradientPathPasses};
constexpr Pipeline kOutputTypes{"output types", kOutputTypesPasses};
constexpr Pipeline kGradientModel{"gradient model", kGradientModelPasses};
constexpr Pipeline kForward{"forward", kForwardPasses};
constexpr Pipeline kInference{"inference", kInferencePasses};
constexpr Pipeline kOneOp{"one op", kOneOpPasses};
constexpr Pipeline kTrainingForm{"training form", kTrainingFormPasses};
constexpr Pipeline kForwardWithLoss{"forward with loss", kForwardWithLossPasses};
constexpr Pipeline kWholeStep{"whole step", kWholeStepPasses};
constexpr Pipeline kExportedTrainingForm{"exported training form", kExportedTrainingFormPasses};
constexpr Pipeline kExportedForward{"exported forward", kExportedForwardPasses};
constexpr Pipeline kExportedStep{"exported step", kExportedStepPasses};
constexpr Pipeline kPlanning{"planning", kPlanningPasses};

std::span<const Pipeline* const> pipelines() {
  static constexpr std::array kAll{&kNewestForm,      &kSettle,        &kBound,
                                   &kUnrolled,        &kStepShapes,    &kOpenGradientPath,
                                   &kOutputTypes,     &kGradientModel, &kForward,
                                   &kInference,       &kOneOp,         &kTrainingForm,
                                   &kForwardWithLoss, &kWholeStep,     &kExportedTrainingForm,
                                   &kExportedForward, &kExportedStep,  &kPlanning};
  return kAll;
}

bool run_stage(std::string_view name, Graph& graph, PassContext& context,
               const std::function<bool()>& stage) {
  using Clock = std::chrono::steady_clock;
  PassLog* const log = context.log;
  const std::size_t record = log == nullptr ? 0 : log->records.size();
  if (log != nullptr) {
    log->records.push_back({std::string(name), log->depth++, 0, graph.node_count()});
  }
  const Clock::time_point start = log == nullptr ? Clock::time_point() : Clock::now();
  const bool changed = stage();
  if (log != nullptr) {
    PassRecord& done = log->records[record];
    --log->depth;
    done.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    done.nodes_after = graph.node_count();
    done.changed = changed;
    if (log->print != nullptr && log->printed == name) done.graph = log->print(graph);
  }
#if !defined(NDEBUG)
  if (changed) verify(graph);
#endif
  return changed;
}

namespace {

bool has_kernel(Device& device, std::string_view op) {
  return op.empty() || !KernelRegistry::instance().find(device.kind(), op, kInternalDomain).empty();
}

}  // namespace

bool run_passes(const Pipeline& pipeline, Graph& graph, PassContext& context) {
  const TimeLimit time_limit;
  bool any = false;
  bool changed = false;
  const std::int64_t most_visits =
      grown(limits().settled_nodes, limits().settled_share, graph.node_count());
  std::int64_t visits = 0;
  for (std::size_t i = 0; i < pipeline.passes.size(); ++i) {
    const Pass& pass = pipeline.passes[i];
    const bool is_wanted =
        pass.run != nullptr && pass.purpose.value_or(context.purpose) == context.purpose &&
        pass.precision.value_or(context.precision) == context.precision &&
        pass.name != context.without && !PassWatch::leaves_out(pass.name) &&
        (!pass.follows_change || changed) && has_kernel(context.device, pass.makes);
    if (!is_wanted) continue;
    if (pass.restarts) {
      visits += static_cast<std::int64_t>(graph.node_count());
      if (visits > most_visits) continue;
    }
    changed = run_stage(pass.name, graph, context, [&] { return pass.run(graph, context); });
    any = any || changed;
    if (changed) PassWatch::note_change(pass.name);
    if (changed && pass.restarts) i = std::size_t(-1);
  }
  return any;
}

}  // namespace graft::passes

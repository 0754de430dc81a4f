#pragma once

#include <cstdint>
#include <vector>

#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/graph/model.h"

namespace graft::passes {

// A pass is a function on a graph that returns whether it changed anything. Each stands in a file
// of its name with a test of its own; pipeline.cpp says when it runs. All work on a working copy,
// never on the user's model.

/// Rewrites every node into the newest form of its op, so that inference, rules and kernels know
/// one form; afterwards the model imports kNewestOpset. Constant nodes become initializers. Calls
/// of functions (the model's own, and those attached for standard ops without a row) are replaced
/// by their bodies, each upgraded from the opset in which it is written; an op with a row is called
/// by its row. Throws Error{unsupported} for ops that Graft does not know, listing all of them;
/// Error{model} for functions that call themselves.
bool upgrade_opset(Model& model);

/// Gives the graph inputs these types and shapes (one a non-initializer input, in order) and
/// forgets what is recorded of all values that depend on them, since files often hold stale shapes.
/// Throws Error{shape} or Error{type} naming the input if its declared type says otherwise.
void bind_inputs(Graph& graph, const std::vector<ValueType>& types);

/// The graph inputs that a caller must give: those without a default value.
std::vector<Value*> required_inputs(const Graph& graph);

/// Infers types and shapes of all values in node order, bodies included. What inference cannot say
/// keeps its declared type. Throws Error{shape} or Error{type} naming the node; in a body, which
/// may be a branch that is never taken, inference just ends there.
bool infer_shapes(Graph& graph);

/// Evaluates nodes whose inputs are known before the run (initializers that are no variables), and
/// Shape, Size and EyeLike of values with known shapes; repeats inference as shapes become known.
/// Random ops stay. Runs on the CPU.
bool fold_constants(Graph& graph);

/// The same right behind infer_shapes: infers nothing again until a node was evaluated.
bool fold_inferred_constants(Graph& graph);

/// Removes nodes whose outputs nobody reads (but those that update a variable) and initializers
/// without readers.
bool eliminate_dead(Graph& graph);

/// Replaces each If whose condition is known by its chosen branch.
bool choose_branches(Graph& graph);

/// Replaces Loops of a known trip count whose condition stays true, and Scans over known lengths,
/// by copies of their bodies, where that makes no more than 20,000 nodes of one: gradients then
/// pass through them as through any nodes. Types of new values are not inferred.
bool unroll_loops(Graph& graph);

/// Runs kSettle (pipeline.h): infers, folds and chooses until nothing changes, and removes the
/// dead.
bool settle(Graph& graph);

/// Replaces nodes whose row gives a decomposition by their simpler ops. All shapes must be known.
bool decompose(Graph& graph);

/// Writes each op that only Graft knows in ops of ONNX, as its row says (OpDef::lower). All shapes
/// must be known. Throws Error{unsupported} that lists the ops that cannot be written so, and then
/// leaves the graph half done.
bool lower(Graph& graph);

/// The same for those nodes only for which the device has no kernel: for plans without gradients.
/// Nodes whose shapes are not known yet stay.
bool decompose_where_needed(Graph& graph, Device& device);

/// Removes each Dropout without a seed whose mask nobody reads, also in training form, which a
/// training-mode export leaves, as onnxruntime does: an answer should not depend on chance.
bool inference_mode(Graph& graph);

/// Puts Dropout, and each BatchNormalization whose scale or bias is a variable that is not named in
/// `frozen`, into training form. Running statistics become variables that the step updates. `seed`
/// starts the random numbers of Dropout. Throws Error{unsupported} for a Dropout whose ratio is
/// computed or whose mask is read, and for a BatchNormalization whose statistics are read.
bool train_mode(Graph& graph, std::uint64_t seed, const std::vector<std::string>& frozen = {});

/// Replaces a Transpose that brings an axis to the front, and the Gathers that take its indices one
/// by one, by a Split along that axis: so exporters take q, k and v from one product.
bool split_stacks(Graph& graph);

/// Replaces MatMul, scaling, masks, Softmax and MatMul by TiledAttention, which never has all
/// scores in memory; only where nothing else reads what lies between, and no mask trains. Where q,
/// k and v were split from one value, it reads that. Before gradients are made. All shapes of what
/// it replaces must be known.
bool fuse_attention(Graph& graph);

/// Where a TiledAttention reads what was made, row by row, of transposed rows, and what is made of
/// its result, row by row, is transposed back, both Transposes go: the attention takes its sequence
/// from another axis. Before gradients are made, after fuse_attention.
bool skip_row_transposes(Graph& graph);

/// Makes a BatchNormalization with fixed statistics part of the Conv or Gemm before it, whose
/// weight and bias become products that fold: where all of them are known before the run, in plans
/// without gradients. All shapes of what it replaces must be known.
bool fold_batch_norm(Graph& graph);

/// Makes a Pad with zeros part of the padding of the convolution behind it. In plans without
/// gradients. All shapes of what it replaces must be known.
bool fold_padding(Graph& graph);

/// Replaces the nodes that spell out a LayerNormalization or RMSNormalization over the last axes by
/// that node. Before gradients are made. All shapes of what it replaces must be known.
bool fuse_layer_norm(Graph& graph);

/// Replaces Gelu, its tanh approximation and Swish, spelled out in simpler ops, by the one op that
/// each is: fewer values are kept for the gradient. All shapes of what it replaces must be known.
bool name_activations(Graph& graph);

/// Lets a MaxPool behind a convolution add its bias and apply the Relu behind the pool, as a
/// MaxPoolWithArgmax: three kernels less on cards, one of them the gradient of the Relu. Before
/// gradients are made.
bool fuse_pools(Graph& graph);

/// Replaces MaxPool by MaxPoolWithArgmax, whose gradient reads a byte for each result in place of
/// what was pooled. Before gradients are made.
bool keep_argmax(Graph& graph);

/// Replaces two f32 products with an activation between them by FeedForward, which works by blocks
/// of rows: where the hidden values are wider than what goes in and comes out, and nothing else
/// reads them. Before gradients are made.
bool fuse_feed_forward(Graph& graph);

/// Lets a MaxPool without padding pass before the Relu behind a convolution, which then has fewer
/// elements to go over, forward and backward. The same numbers come out, and the same gradients:
/// where the Relu makes all of a window 0, none passes. Before gradients are made.
bool pool_before_relu(Graph& graph);

/// Makes a Relu, or a Clip with constant bounds, part of the convolution before it, as ConvClamp.
/// In plans without gradients.
bool clamp_convolutions(Graph& graph);

/// Lets matrix products and convolutions (OpDef::mixed_precision) of f32 read and write bf16, with
/// Casts round them, and on the CPU what follows them; the rest, and so the parameters, stay f32.
/// Before gradients are added: those pass through the Casts.
bool compute_in_bf16(Graph& graph, Device& device);

/// Allows tensor cores to round the operands of f32 products and convolutions (core/ops/tf32.h).
/// Behind all passes that make such nodes; for the CPU it does nothing.
bool compute_in_tf32(Graph& graph, Device& device);

/// Makes Relu and Clip with constant bounds part of the training BatchNormalization before them, in
/// a graph that holds the gradients of both: neither then passes over memory by itself.
bool fuse_activations(Graph& graph);

/// Lets a matrix product add what an Add behind it adds: a bias, or a value of its own shape. Not
/// in half precision, where the sum would be rounded once less. In a graph with gradients, after
/// these are made.
bool add_in_products(Graph& graph);

/// Makes one node of a product that only computes the gradient of a parameter and the update that
/// reads it, where that pays: the gradient is then made and used piece by piece, or, for plain SGD,
/// added to the parameter at once. On cards, of an update and a sum of few rows as well, the
/// gradient of a bias; those updates still run together with others. All shapes of what it replaces
/// must be known.
bool fuse_product_updates(Graph& graph, Device& device);

/// Chooses the layout in which the plan keeps each image [N, C, spatial...] (Value::layout), and
/// adds Relayout nodes where layouts meet. All shapes must be known.
bool choose_layouts(Graph& graph, Device& device);

/// Joins the Add of a convolution's input gradient and another value into a ConvInputGrad that adds
/// to that value where it lies, wherever the kernel of the gradient does both. The other value is
/// made as late as that if it is larger than what it is made of. Behind choose_layouts, with
/// updates still behind what reads their variables.
bool fuse_addends(Graph& graph, Device& device);

/// Lets each update of a variable run as soon as its gradient is there and nobody reads the
/// variable any more: gradients then need not wait for the end of the step.
bool move_updates(Graph& graph);

/// The same for every node that frees more memory than it takes, the one that frees most first; the
/// others keep their order. That need not make the whole plan smaller: its caller compares.
bool order_for_memory(Graph& graph);

/// Where a formula makes the new content of variables (Assign, one behind the other: an optimizer
/// of a program's own), joins the element-wise nodes of the formula that nothing else reads, and
/// the assignments, into an UpdateChain in the place of the last, which writes the variables
/// itself. Not where something reads a variable later. The results are the same bits.
bool fuse_updates(Graph& graph, Device& device);

/// Joins element-wise nodes of one shape and layout, those for which the device has a RunFunction,
/// into ElementwiseChain nodes: chains and trees, with operands that broadcast. What others read of
/// a link becomes an output of its chain. A chain stands where its last link stood; it is not made
/// if a reader comes before that, a variable changes meanwhile, or more memory would be held. The
/// results are the same bits.
bool fuse_chains(Graph& graph, Device& device);

}  // namespace graft::passes

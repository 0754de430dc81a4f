#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.h"

/// Surgery on a model in memory. An operation that throws leaves the model as it was. Names, doc
/// strings and metadata of what remains are kept; types of values are not inferred anew here
/// (edit::complete_output_types does, for outputs).
namespace graft::edit {

/// Makes one value the only output, and removes the nodes, initializers and graph inputs that it
/// does not need. `value` is the name of a value or, if no value has it, of exactly one node, whose
/// first output is then meant. Throws Error{argument}, with close names, if there is none, and if
/// it is a graph input or an initializer.
void truncate(Model& model, std::string_view value);

/// Cuts out what lies between values. The inputs become graph inputs under their own names: those
/// which the graph has already keep their place, the others follow in the order given. Without
/// `inputs`: those graph inputs that the outputs need. `outputs` are named as in `truncate`.
/// Throws Error{argument} if a name is unknown or given twice, if an output is an input, if the
/// outputs need a graph input that is not listed, or if the element type of a new input is unknown.
void extract(Model& model, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs);

/// Removes nodes none of whose outputs is used, bodies' nodes included, until there are none; then
/// initializers that nothing uses. Graph inputs and nodes without outputs stay.
/// Returns how many nodes and initializers went.
std::size_t remove_unused(Graph& graph);

/// Whether a body below the graph's nodes has a value of that name. Names must differ within a
/// file.
bool is_name_of_body(const Graph& graph, std::string_view name);

/// Gives a value of the top graph another name. Throws Error{argument} if there is no such value,
/// Error{model} if the new name is taken, in bodies too.
void rename(Model& model, std::string_view from, std::string_view to);

/// Sets the first dim of every graph input that is no initializer and has a known rank >= 1: to a
/// number, or, without one, to the name that a first dim has already, else to a new one ("N").
///
/// Where the old batch was a number, dims of computed values that may come from it become unknown:
/// first dims and multiples of it (for an old batch of 1: dims of 1). Inference finds them again.
/// A Reshape of data that depends on an input and whose constant target starts with the old batch
/// gets -1 there; if -1 stands elsewhere in it, 0 ("copy") where the data starts with the batch.
/// A shared constant is replaced for that Reshape only. change_batch (core/layers/batch.h), which
/// can infer shapes, finds batches that are baked into other constants.
///
/// Throws Error{argument} if the batch is below 1, no input has a first dim, or inputs hold
/// different numbers at their `batch_axis`; Error{unsupported}, naming the node, if a Reshape's
/// target fixes the number of elements in another way.
void set_batch(Model& model, std::optional<std::int64_t> batch);

/// Where a graph input of known rank above 0 holds the batch: first, unless the dim there is
/// another than the first input begins with, and one other dim is that one, as in a recurrent state
/// [2,N,128] beside [N,512], or [2,?,128] beside [?,512].
int batch_axis(const Graph& graph, const Value& input);

/// The same as `set_batch`, but constants stay as they are.
void set_batch_types(Model& model, std::optional<std::int64_t> batch);

/// Turns each Identity of an initializer into an initializer of its own, under its output's name.
/// Exporters write one tensor for parameters that happen to be equal (all scales 1, say), and
/// Identity nodes for the others: trained, they part. So do a BatchNormalization's mean and
/// variance from what they were merged with. Returns how many there were.
std::size_t separate_initializers(Graph& graph);

}  // namespace graft::edit

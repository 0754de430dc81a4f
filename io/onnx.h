#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/graph/model.h"
#include "io/named_tensor.h"

// Reads and writes ONNX files. Whatever the bytes are, reading ends in a model or in one
// graft::Error, and takes no more memory than their number justifies.
namespace graft::onnx {

struct LoadOptions {
  /// The model's own file, data files beside it not counted. Protobuf ends at 2 GiB - 1.
  std::uint64_t max_bytes = 0x7fffffff;
};

/// Loads a model. What the IR does not interpret is kept, so that `save` writes a file that equals
/// this one field by field, with two exceptions: nodes that stood before the producers of their
/// inputs are sorted, and data from other files is embedded. The model is not inferred: values have
/// the types that the file gives them, and the roles that its exporter lets us see (Value::role).
///
/// Data files are opened beneath the model's folder only, never through a link.
///
/// Throws Error{io} if a file cannot be read, Error{model} if the bytes or the model are not valid
/// (the message names node or value), Error{unsupported} for valid models that Graft cannot hold.
Model load(const std::filesystem::path& path, const LoadOptions& options = {});

/// The same from memory. `folder` is where data files lie; none are read when it is empty.
Model parse(std::string_view bytes, const std::filesystem::path& folder = {},
            const LoadOptions& options = {});

struct SaveOptions {
  /// The plain name of a file beside the model's that takes the larger initializers and constants;
  /// where a file has that name, NAME.1, or .2, ... Empty: all data goes into the model's file,
  /// which then ends at 2 GiB.
  std::string external_data{};
  /// Tensors of at least this many bytes go there.
  std::size_t external_threshold_bytes = 1024;
};

/// Writes the model with the content that its tensors have now. The file appears complete or not at
/// all: on failure an older one stays as it was. With `external_data` the data file is always a new
/// one, and the older model's is removed when nothing needs it any more: whoever is interrupted at
/// any time has the older model or the new one, each with its own data. A copy of the older model
/// elsewhere in the folder loses its data, and says so when it is loaded.
///
/// A model made in memory gets the ir_version of its opset and the producer "graft". Outputs
/// whose type is not known are written without one, which checkers refuse: after surgery call
/// edit::complete_output_types.
///
/// Throws Error{io} with the system's text, Error{model} if the model holds nodes of the internal
/// domain ai.graft or ops of a domain that it does not import, or is too large for one file,
/// Error{argument} if `external_data` is no plain file name or is that of the model's file.
void save(const Model& model, const std::filesystem::path& path, const SaveOptions& options = {});

/// The bytes that `save` writes by default.
std::string serialize(const Model& model);

/// Gives each parameter an initializer of its own that PyTorch's exporter merged with equal ones
/// without leaving an Identity (torch.export, when it optimizes). What it keeps of the source
/// beside each node names the parameters there: readers of one initializer that name none in common
/// had parameters of their own; tied weights stay tied. Returns how many initializers were added.
std::size_t separate_merged(Graph& graph);

/// A TensorProto file (.pb), as in ONNX's backend tests. Throws as `load` does.
NamedTensor load_tensor(const std::filesystem::path& path);
/// A file (.pb) of the kind that the model's file gives `like` as its type: a TensorProto,
/// SequenceProto, OptionalProto or MapProto. Throws as `load` does.
NamedDatum load_data(const std::filesystem::path& path, const Value& like);
void save_tensor(const std::filesystem::path& path, const Tensor& tensor,
                 std::string_view name = "");

}  // namespace graft::onnx

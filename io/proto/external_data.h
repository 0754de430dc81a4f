#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "io/file.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// Where a tensor's bytes lie outside the model's file.
struct ExternalRange {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

inline bool is_external(const pb::TensorProto& tensor) {
  return tensor.has_data_location() && tensor.data_location() == pb::TensorProto::EXTERNAL;
}

/// Reads the data files of one model. Source: ONNX docs, ExternalData.md.
class ExternalReader {
 public:
  /// An empty folder refuses every tensor: the model came without one.
  explicit ExternalReader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// Throws Error{model} if the entries are malformed, Error{io} unless `bytes` bytes are there.
  void check(const pb::TensorProto& tensor, std::size_t bytes, std::string_view who) const;
  /// Copies `bytes` bytes to `target`, checked as above.
  void read(const pb::TensorProto& tensor, std::size_t bytes, std::string_view who,
            void* target) const;

 private:
  File open(const ExternalRange& range, std::size_t bytes, std::string_view who) const;

  std::filesystem::path folder_;
};

/// The folder in which the data files of a model lie: that of `path` or, where `path` is a link and
/// one of them is not beside it, that of the file that it leads to.
std::filesystem::path folder_of_data(const std::filesystem::path& path,
                                     const pb::ModelProto& model);

/// The data files that the model file at `path` names, as it names them; none if it is no model.
std::set<std::string> data_files_of(const std::filesystem::path& path);

/// Collects tensors in one data file beside a model that is being saved. The file is new: what the
/// older model refers to stays until that model is replaced, so that whoever is interrupted at any
/// time leaves the older model or the new one, each with its own data.
class ExternalWriter {
 public:
  /// `name` is a plain file name; where a file has it, the data go to `name`.1, or .2, ...
  /// Throws Error{argument} for another name, Error{io} as NewFile does.
  ExternalWriter(std::filesystem::path model, const std::string& name, std::size_t threshold_bytes);

  bool takes(std::size_t bytes) const { return bytes >= threshold_bytes_; }
  /// Appends the bytes and lets `tensor` refer to them.
  void add(const void* bytes, std::size_t count, pb::TensorProto& tensor);
  /// Writes `file`, the model that refers to the data, in place of the older one, then removes that
  /// one's data file if it was of this kind: `name` or `name`.NUMBER. A file to which nothing was
  /// added goes too.
  void commit(AtomicFile& file);

 private:
  bool is_own(const std::string& file) const;

  std::filesystem::path model_;
  std::string name_;
  std::size_t threshold_bytes_;
  NewFile file_;
  bool is_used_ = false;
};

}  // namespace graft::onnx

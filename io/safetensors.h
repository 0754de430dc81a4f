#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/named_tensor.h"

// Tensors by name, and texts about them, in one file that other programs read without running
// anything. Source: github.com/huggingface/safetensors, "Format".
namespace graft::safetensors {

/// What a file holds.
struct Content {
  std::vector<NamedTensor> tensors;
  /// The texts of "__metadata__", by key.
  std::vector<std::pair<std::string, std::string>> metadata = {};
};

/// Reads a file, its tensors in the order of their bytes. Throws Error{io} unless header, element
/// types, shapes and places are whole: tensors follow one another without gap or overlap and end
/// where the file ends, and no name, of a tensor or a text, is there twice. Error{unsupported} for
/// an element type that takes no whole bytes.
Content load(const std::filesystem::path& path);

/// Writes a file that appears complete or not at all. Throws Error{argument} if a name is empty, is
/// there twice or is "__metadata__", or a key of a text is there twice, Error{type} for an element
/// type that the format lacks, Error{io} if it cannot be written.
void save(const std::filesystem::path& path, const Content& content);

}  // namespace graft::safetensors

#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/layers/lora.h"

namespace graft {

/// Writes the adapters of a model to a safetensors file, named as PEFT names them
/// ("base_model.model.fc1.lora_A.weight"); each alpha is among the file's texts ("fc1.lora_alpha").
/// Throws Error{argument} if the model has no adapter, Error{io} if the file cannot be written.
void save_lora(const Model& model, const std::filesystem::path& path);

/// Reads such a file, PEFT's own adapter_model.safetensors too. `alpha` counts where it is given;
/// else what the file says, else "lora_alpha" in adapter_config.json beside it. Throws Error{io} if
/// it cannot be read, Error{unsupported} naming a tensor that is no part of an adapter,
/// Error{argument} where nothing says alpha.
std::vector<edit::LoraAdapter> load_lora(const std::filesystem::path& path,
                                         std::optional<double> alpha = {});

}  // namespace graft

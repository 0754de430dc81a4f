#include "train/lora_file.h"

#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "io/safetensors.h"

namespace graft {
namespace {

constexpr std::string_view kPrefix = "base_model.model.";
constexpr std::string_view kAlpha = ".lora_alpha";

struct Part {
  std::string layer;
  bool is_a;
};

/// Of "base_model.model.fc1.lora_A.weight", also with the name of an adapter before "weight".
std::optional<Part> part_of(std::string_view name) {
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  if (!name.ends_with(".weight")) return std::nullopt;
  for (const std::string_view mark : {".lora_A.", ".lora_B."}) {
    const std::size_t at = name.rfind(mark);
    if (at != name.npos && at > 0) return Part{std::string(name.substr(0, at)), mark == ".lora_A."};
  }
  return std::nullopt;
}

std::optional<double> number_in(std::string_view digits) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

/// The shortest text that reads back as the same number.
std::string text_of(double number) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), end};
}

/// What PEFT writes beside its adapters.
std::optional<double> alpha_beside(const std::filesystem::path& path) {
  std::ifstream file(path.parent_path() / "adapter_config.json");
  if (!file) return std::nullopt;
  const auto config = nlohmann::json::parse(file, nullptr, false);
  if (!config.is_object() || !config.contains("lora_alpha")) return std::nullopt;
  const auto& alpha = config["lora_alpha"];
  return alpha.is_number() ? std::optional(alpha.get<double>()) : std::nullopt;
}

std::optional<double> alpha_in(const safetensors::Content& content, const std::string& layer) {
  for (const auto& [key, value] : content.metadata) {
    if (key == layer + std::string(kAlpha)) return number_in(value);
  }
  return std::nullopt;
}

}  // namespace

void save_lora(const Model& model, const std::filesystem::path& path) {
  const std::vector<edit::LoraAdapter> adapters = edit::lora_adapters(model);
  if (adapters.empty()) {
    fail(ErrorKind::argument, "the model has no adapters to write to '", path.string(), "'");
  }
  safetensors::Content content{.tensors = {}, .metadata = {{"format", "pt"}}};
  for (const edit::LoraAdapter& adapter : adapters) {
    const std::string name = std::string(kPrefix) + adapter.layer;
    content.tensors.push_back({name + ".lora_A.weight", adapter.a.to(cpu())});
    content.tensors.push_back({name + ".lora_B.weight", adapter.b.to(cpu())});
    content.metadata.emplace_back(adapter.layer + std::string(kAlpha), text_of(adapter.alpha));
  }
  safetensors::save(path, content);
}

std::vector<edit::LoraAdapter> load_lora(const std::filesystem::path& path,
                                         std::optional<double> alpha) {
  const safetensors::Content content = safetensors::load(path);
  std::map<std::string, edit::LoraAdapter> adapters;
  for (const NamedTensor& named : content.tensors) {
    const std::optional<Part> part = part_of(named.name);
    if (!part) {
      fail(ErrorKind::unsupported, "'", path.string(), "': '", named.name,
           "' is no part of an adapter: wanted NAME.lora_A.weight or NAME.lora_B.weight");
    }
    edit::LoraAdapter& adapter = adapters[part->layer];
    adapter.layer = part->layer;
    (part->is_a ? adapter.a : adapter.b) = named.tensor;
  }
  const std::optional<double> beside = alpha_beside(path);
  std::vector<edit::LoraAdapter> all;
  for (auto& [layer, adapter] : adapters) {
    if (!adapter.a.defined() || !adapter.b.defined()) {
      fail(ErrorKind::argument, "'", path.string(), "': layer '", layer, "' has no lora_",
           adapter.a.defined() ? 'B' : 'A');
    }
    std::optional<double> said = alpha;
    if (!said) said = alpha_in(content, layer);
    if (!said) said = beside;
    if (!said) {
      fail(ErrorKind::argument, "'", path.string(), "' does not say the alpha of layer '", layer,
           "', and no adapter_config.json beside it does; give it");
    }
    adapter.alpha = *said;
    all.push_back(std::move(adapter));
  }
  return all;
}

}  // namespace graft

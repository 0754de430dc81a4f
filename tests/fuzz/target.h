#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace graft::fuzz {

/// A mistake of Graft's that some bytes have shown: a promise that did not hold.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// What any bytes may be given to. It answers with a result or a graft::Error, which it keeps to
/// itself; whatever else leaves `run` is a finding, and so is a crash.
struct Target {
  std::string_view name;
  void (*run)(std::string_view bytes);
  /// Of a target of models, which are mutated node by node (mutate.h), other bytes by libFuzzer: as
  /// `run`; returns whether the model ran.
  bool (*runs_model)(std::string_view bytes) = nullptr;

  /// Shown where a test fails.
  friend void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }
};

/// Those that read files, and need io and data alone.
std::span<const Target> byte_targets();
/// Those that run models.
std::span<const Target> model_targets();
/// Those that run the program.
std::span<const Target> command_targets();

/// Whether `action` comes to an end without a graft::Error. Throws Finding if the error says
/// nothing.
bool succeeds(const std::function<void()>& action);

/// The same of what is only tried, whatever an error says.
bool succeeds_quietly(const std::function<void()>& action);

/// Throws Finding{what} unless `holds`.
void require(bool holds, const std::string& what);

// What they call.
void run_csv(std::string_view bytes);
void run_idx(std::string_view bytes);
void run_cifar(std::string_view bytes);
void run_gzip(std::string_view bytes);
void run_npy(std::string_view bytes);
void run_npz(std::string_view bytes);
void run_safetensors(std::string_view bytes);
void run_tensor(std::string_view bytes);
/// The first byte says of which kind the data are.
void run_data(std::string_view bytes);
void run_model(std::string_view bytes);
/// How far the model went.
enum class Reached { nothing, loaded, ran, trained };
Reached follow_pipeline(std::string_view bytes);
inline void run_pipeline(std::string_view bytes) {
  follow_pipeline(bytes);
}
inline bool pipeline_runs(std::string_view bytes) {
  return follow_pipeline(bytes) >= Reached::ran;
}
void run_command_line(std::string_view bytes);

}  // namespace graft::fuzz

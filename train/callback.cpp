#include "train/callback.h"

namespace graft {

void Callback::on_start(Run& /*run*/) {}
void Callback::on_step(Run& /*run*/, const Progress& /*progress*/) {}
void Callback::on_save(Run& /*run*/) {}
bool Callback::looks_at_step(const Run& /*run*/) {
  return true;
}
void Callback::on_validation(Run& /*run*/, const Evaluation& /*evaluation*/) {}
void Callback::on_epoch(Run& /*run*/, const EpochReport& /*report*/) {}
void Callback::after_epoch(Run& /*run*/, const EpochReport& /*report*/) {}
void Callback::on_checkpoint(Run& /*run*/, const std::filesystem::path& /*path*/) {}
void Callback::on_end(Run& /*run*/) {}
void Callback::on_error(Run& /*run*/, const Error& /*error*/) {}
void Callback::load_state(const std::map<std::string, double>& /*state*/) {}

}  // namespace graft

#include "core/passes/pass_watch.h"

#include <utility>

namespace graft::passes {
namespace {

thread_local PassWatch* newest = nullptr;

}  // namespace

PassWatch::PassWatch(std::string_view without)
    : without_(without), before_(std::exchange(newest, this)) {}

PassWatch::~PassWatch() {
  newest = before_;
}

bool PassWatch::leaves_out(std::string_view pass) {
  return newest != nullptr && !newest->without_.empty() && newest->without_ == pass;
}

void PassWatch::note_change(std::string_view pass) {
  if (newest != nullptr) newest->changed_.insert(pass);
}

}  // namespace graft::passes

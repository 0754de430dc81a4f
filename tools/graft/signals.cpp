#include "tools/graft/signals.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

volatile std::sig_atomic_t asked = 0;

/// Calls `handler` at the next such signal; from the second of its kind on the process ends as
/// usual.
void at_interrupt(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

}  // namespace

void end_when_interrupted(bool says) {
  if (!says) return at_interrupt([](int /*signal*/) { ::_exit(interrupted); });
  at_interrupt([](int /*signal*/) {
    static constexpr std::string_view kText =
        "graft: interrupted before the first update; nothing is written\n";
    [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, kText.data(), kText.size());
    ::_exit(interrupted);
  });
}

void stop_when_interrupted() {
  at_interrupt([](int /*signal*/) { asked = 1; });
}

bool stop_asked() {
  return asked != 0;
}

void ask_to_stop() {
  asked = 1;
}

void outlive_readers() {
  std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace graft::cli

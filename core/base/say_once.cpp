#include "core/base/say_once.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace graft {

void say_once(const std::string& line) {
  static std::mutex& mutex = *new std::mutex;
  static std::set<std::string>& said = *new std::set<std::string>;
  const std::scoped_lock lock(mutex);
  if (said.insert(line).second) std::fputs(("graft: " + line + "\n").c_str(), stderr);
}

}  // namespace graft

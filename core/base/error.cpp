#include "core/base/error.h"

namespace graft {
namespace {

/// Names in files may hold zero bytes, where `what` would end.
std::string with_zeros_shown(const std::string& message) {
  std::string shown;
  for (const char c : message) c == '\0' ? shown += "\\x00" : shown += c;
  return shown;
}

}  // namespace

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::io:
      return "io";
    case ErrorKind::model:
      return "model";
    case ErrorKind::shape:
      return "shape";
    case ErrorKind::type:
      return "type";
    case ErrorKind::device:
      return "device";
    case ErrorKind::memory:
      return "memory";
    case ErrorKind::argument:
      return "argument";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::numeric:
      return "numeric";
  }
  return "unknown";
}

void throw_error(ErrorKind kind, const std::string& message) {
  throw Error(kind, with_zeros_shown(message));
}

}  // namespace graft

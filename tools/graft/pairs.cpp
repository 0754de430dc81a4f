#include "tools/graft/pairs.h"

#include "core/base/error.h"

namespace graft::cli {

std::pair<std::string, std::string> split_pair(std::string_view option, const std::string& text,
                                               std::string_view form) {
  const std::size_t at = text.rfind('=');
  if (at == text.npos || at == 0 || at + 1 == text.size()) {
    fail(ErrorKind::argument, option, " '", text, "': wanted ", form);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace graft::cli

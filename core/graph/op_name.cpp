#include "core/graph/op_name.h"

#include <functional>

namespace graft {

std::size_t OpNames::Hash::operator()(const View& name) const {
  constexpr std::size_t kFactor = 31;
  const std::hash<std::string_view> hash;
  return kFactor * hash(name.type) + hash(name.domain);
}

const OpName& OpNames::of(std::string_view type, std::string_view domain) {
  const auto known = names_.find(View{type, domain});
  if (known != names_.end()) return *known;
  return *names_.emplace(std::string(type), std::string(domain)).first;
}

}  // namespace graft

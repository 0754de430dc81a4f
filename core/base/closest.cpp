#include "core/base/closest.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "core/base/edit_distance.h"

namespace graft {
namespace {

// Names of files may be of any length; what a person types is not.
constexpr std::size_t kLongest = 128;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::vector<std::string> closest(std::string_view wanted,
                                 const std::vector<std::string_view>& candidates,
                                 std::size_t most) {
  if (wanted.empty() || wanted.size() > kLongest) return {};
  const std::string target = lower(wanted);
  std::set<std::pair<std::size_t, std::string_view>> ranked;
  for (const std::string_view candidate : candidates) {
    if (candidate.empty() || candidate.size() > kLongest) continue;
    const std::string name = lower(candidate);
    const std::size_t letters = edit_distance(target, name);
    const bool holds = name.find(target) != std::string::npos ||
                       (name.size() > 2 && target.find(name) != std::string::npos);
    if (holds || letters <= std::max<std::size_t>(1, target.size() / 3)) {
      ranked.emplace(letters, candidate);
    }
  }
  std::vector<std::string> names;
  for (const auto& [letters, name] : ranked) {
    if (names.size() == most) break;
    names.emplace_back(name);
  }
  return names;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "'" : ", '") + name + "'";
  return out;
}

}  // namespace graft

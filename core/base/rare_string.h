#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace graft {

/// A string that most of its owners leave empty, and which then takes the space of a pointer.
class RareString {
 public:
  RareString() = default;
  RareString(std::string text)  // NOLINT(google-explicit-constructor): it is one
      : text_(text.empty() ? nullptr : std::make_unique<const std::string>(std::move(text))) {}
  RareString(const char* text) : RareString(std::string(text)) {}  // NOLINT: as above
  RareString(const RareString& other) : RareString(other.str()) {}
  RareString(RareString&&) noexcept = default;
  RareString& operator=(const RareString& other) { return *this = RareString(other); }
  RareString& operator=(RareString&&) noexcept = default;
  ~RareString() = default;

  bool empty() const { return text_ == nullptr; }
  const std::string& str() const {
    static const std::string kEmpty;
    return text_ == nullptr ? kEmpty : *text_;
  }
  operator const std::string&() const { return str(); }  // NOLINT: as above

  friend bool operator==(const RareString& a, std::string_view b) { return a.str() == b; }

 private:
  std::unique_ptr<const std::string> text_;  // null: empty
};

}  // namespace graft

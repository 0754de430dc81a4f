#pragma once

#include <set>
#include <string_view>

namespace graft::passes {

/// While it lives, the lists of passes that its thread runs tell it which passes changed a graph,
/// and leave out one: for comparing what is computed with and without a pass. The newest of a
/// thread is told.
class PassWatch {
 public:
  explicit PassWatch(std::string_view without = {});
  ~PassWatch();
  PassWatch(const PassWatch&) = delete;
  PassWatch& operator=(const PassWatch&) = delete;

  /// Of the lists (pipeline.h); a list within a list is one of them. Besides, what a pass notes of
  /// its parts.
  const std::set<std::string_view>& changed() const { return changed_; }

  /// For what runs the lists.
  static bool leaves_out(std::string_view pass);
  static void note_change(std::string_view pass);

 private:
  std::string_view without_;
  std::set<std::string_view> changed_;
  PassWatch* before_;
};

}  // namespace graft::passes

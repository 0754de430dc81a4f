#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace graft::testing {

/// A new folder that goes away with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into the folder and returns its path.
  std::filesystem::path write(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

/// The bytes of these numbers, each in [0, 255].
std::string bytes(std::initializer_list<int> values);

/// An idx file: 0 0 type rank, the dims with the highest byte first, then `data`.
std::string idx(int type, std::initializer_list<std::uint32_t> dims, std::string_view data);

/// `content` as a gzip file (RFC 1952) of one stored block; at most 65535 bytes.
std::string gzip(std::string_view content);

/// The folder of what a trainer must reproduce, as PyTorch recorded it; its README says what is in
/// it. Part of the repository.
std::filesystem::path training_cases();

/// The folder of shared test data: GRAFT_SHARED, or ../shared as tests run in the repository's
/// root.
std::filesystem::path shared_folder();

/// Expects that `action` throws Error{kind} whose text holds `part`.
template <class Action>
void expect_error(ErrorKind kind, std::string_view part, Action&& action) {
  try {
    action();
    ADD_FAILURE() << "no error, wanted one with '" << part << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
        << "'" << error.what() << "' lacks '" << part << "'";
  }
}

}  // namespace graft::testing

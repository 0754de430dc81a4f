#pragma once

#include "tests/data/test_files.h"

namespace graft::fuzz {

/// Where a process keeps the files that its target reads, one after the other.
const testing::TempFolder& folder();

/// A file of that folder that stays open and is written again and again: to make a new one each
/// time costs more than what reads it.
class KeptFile {
 public:
  explicit KeptFile(const std::string& name);
  ~KeptFile();
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  /// Gives it this content. Returns its path.
  const std::filesystem::path& write(std::string_view content) const;

 private:
  std::filesystem::path path_;
  int file_;
};

}  // namespace graft::fuzz

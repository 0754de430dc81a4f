#pragma once

#include "tests/data/test_files.h"

namespace graft::fuzz {

/// Where a process keeps the files that its target reads, one after the other.
const testing::TempFolder& folder();

}  // namespace graft::fuzz

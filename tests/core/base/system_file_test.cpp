#include "core/base/system_file.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(SystemFile, IsReadWholeAndOneThatIsNotThereIsEmpty) {
  EXPECT_NE(read_system_file("/proc/self/status").find("VmRSS"), std::string::npos);
  EXPECT_EQ(read_system_file("/proc/self/nothing"), "");
}

}  // namespace
}  // namespace graft

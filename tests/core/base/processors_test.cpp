#include "core/base/processors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace graft {
namespace {

/// The files that the kernel shows, in a folder.
class Processors : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int quota() const { return processors_by_quota(root_.string()); }

 private:
  std::filesystem::path root_;
};

TEST_F(Processors, WithoutControlGroupsThereIsNoLimit) {
  EXPECT_EQ(quota(), 0);
}

TEST_F(Processors, AQuotaIsRoundedUp) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 2);
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 1);
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(Processors, TheLeastOfTheGroupAndThoseAroundItCounts) {
  write("proc/self/cgroup", "0::/pods/mine\n");
  write("sys/fs/cgroup/pods/mine/cpu.max", "800000 100000\n");
  write("sys/fs/cgroup/pods/cpu.max", "400000 100000\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 4);
}

TEST_F(Processors, ReadsVersionOneToo) {
  write("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/host/name\n1:name=systemd:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");  // a container sees its group on top
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 3);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(Processors, DamagedFilesSetNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::/\n:\n::");
  write("sys/fs/cgroup/cpu.max", "many 0\n");
  EXPECT_EQ(quota(), 0);
  write("sys/fs/cgroup/cpu.max", "9223372036854775807 1\n");
  EXPECT_GT(quota(), 1);
}

TEST(ProcessorsOfProcess, AreOneAtLeast) {
  EXPECT_GE(processors_of_process(), 1);
}

}  // namespace
}  // namespace graft

#include "core/device/communicator.h"

#include <gtest/gtest.h>

#include <array>

#include "core/base/error.h"
#include "core/device/mpi_communicator.h"

namespace graft {
namespace {

class Numbered final : public Communicator {
 public:
  int rank() const override { return 1; }
  int size() const override { return 3; }
  void all_reduce(std::span<float> /*values*/) override {}
  void all_reduce(std::span<double> /*values*/) override {}
  void broadcast(std::span<std::byte> /*bytes*/, int /*root*/) override {}
  void barrier() override {}
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
};

TEST(Communicator, AloneChangesNothing) {
  std::array<float, 2> values{1.5F, -2.0F};
  alone().all_reduce(values);
  alone().broadcast(std::as_writable_bytes(std::span(values)), 0);
  alone().barrier();
  EXPECT_EQ(values, (std::array<float, 2>{1.5F, -2.0F}));
  EXPECT_EQ(alone().rank(), 0);
  EXPECT_EQ(alone().size(), 1);
  EXPECT_EQ(alone().local_size(), 1);
  EXPECT_EQ(&or_alone(nullptr), &alone());
}

TEST(Communicator, IsFoundByItsId) {
  EXPECT_EQ(alone().id(), 0);
  EXPECT_EQ(&communicator_of(0), &alone());
  const auto one = std::make_shared<Numbered>();
  const auto other = std::make_shared<Numbered>();
  EXPECT_NE(one->id(), other->id());
  EXPECT_EQ(&communicator_of(one->id()), one.get());
  EXPECT_EQ(&communicator_of(other->id()), other.get());
  EXPECT_EQ(&or_alone(one), one.get());
  EXPECT_EQ(one->local_size(), 3);
}

TEST(Communicator, WithoutMpiThereIsNoWorldToJoin) {
  if (!mpi_library().empty()) GTEST_SKIP() << "this build has " << mpi_library();
  try {
    mpi_communicator();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(error.what()).find("-DGRAFT_MPI=ON"), std::string::npos);
  }
}

}  // namespace
}  // namespace graft

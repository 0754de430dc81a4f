#include "tools/graft/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/device/mpi_communicator.h"
#include "tools/graft/numbers.h"

namespace graft::cli {
namespace {

using std::chrono::milliseconds;

/// Takes what is written and keeps none of it.
class Nowhere : public std::streambuf {
  int_type overflow(int_type c) override { return traits_type::not_eof(c); }
  std::streamsize xsputn(const char* /*text*/, std::streamsize count) override { return count; }
};

/// While it lives, the standard streams write nothing.
class Silence {
 public:
  Silence() : out_(std::cout.rdbuf(&nowhere_)), error_(std::cerr.rdbuf(&nowhere_)) {}
  ~Silence() {
    std::cout.rdbuf(out_);
    std::cerr.rdbuf(error_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  Nowhere nowhere_;
  std::streambuf* out_;
  std::streambuf* error_;
};

std::shared_ptr<Communicator>& communicator() {
  static std::shared_ptr<Communicator> ranks;
  return ranks;
}

std::optional<Silence>& silence() {
  static std::optional<Silence> kept;
  return kept;
}

/// What Open MPI's mpirun, MPICH's or srun says of a process that it starts; `otherwise` where
/// nobody says anything.
int from_launcher(std::initializer_list<const char*> variables, int otherwise) {
  for (const char* name : variables) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    if (const std::optional<int> number = number_in<int>(value)) return *number;
  }
  return otherwise;
}

int launched_size() {
  return from_launcher({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

int launched_rank() {
  return launched_size() == 1
             ? 0
             : from_launcher({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
}

/// Where the launcher gave each rank processors of its own, `thread_count` says how many.
int threads_of_rank(const Communicator& ranks) {
  const int mine = thread_count();
  const auto all = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const bool is_bound = static_cast<int>(std::thread::hardware_concurrency()) < all;
  const int share = (is_bound ? all : mine) / ranks.local_size();
  return std::clamp(share, 1, mine);
}

}  // namespace

std::shared_ptr<Communicator> join_ranks(bool sets_threads) {
  const int size = launched_size();
  if (size <= 1) return nullptr;
  if (mpi_library().empty()) {
    fail(ErrorKind::unsupported, size,
         " processes were started together, but this build of Graft has no MPI, so that each would "
         "train alone and write the same files: configure it with -DGRAFT_MPI=ON "
         "(docs/cluster.md), or start one process");
  }
  communicator() = mpi_communicator();
  if (communicator()->size() != size) {
    fail(ErrorKind::unsupported, size, " processes were started together, but MPI knows of ",
         communicator()->size(),
         ": start them by the mpirun of the MPI that this Graft was built with, ", mpi_library());
  }
  if (communicator()->rank() > 0) silence().emplace();
  if (sets_threads) set_thread_count(threads_of_rank(*communicator()));
  return communicator();
}

std::string before_report(bool saves) {
  silence().reset();
  const int rank = launched_rank();
  if (rank == 0) return {};
  std::this_thread::sleep_for(saves ? milliseconds(30'000) : milliseconds(1000));
  return text("rank ", rank, ": ");
}

void leave_ranks() {
  silence().reset();
  communicator().reset();
}

void end_ranks(int code) {
  if (communicator() == nullptr) return;
  std::cout.flush();
  std::cerr.flush();
  communicator()->abort(code);
}

}  // namespace graft::cli

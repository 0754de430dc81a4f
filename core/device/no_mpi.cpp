#include "core/base/error.h"
#include "core/device/mpi_communicator.h"

namespace graft {

std::shared_ptr<Communicator> mpi_communicator() {
  fail(ErrorKind::unsupported,
       "this build of Graft has no MPI: configure it with -DGRAFT_MPI=ON; see docs/cluster.md");
}

std::string mpi_library() {
  return {};
}

}  // namespace graft

#pragma once

#include <memory>
#include <string>

#include "core/device/communicator.h"

namespace graft {

/// The processes that `mpirun` or `srun` started together: MPI's world, which the first call joins.
/// The world is left when the last owner lets go of it, which waits for the other ranks; where an
/// exception does that, all ranks end as soon as this process does, instead of waiting for it for
/// ever. There is no joining it again.
/// Throws Error{unsupported} in a build without MPI, and after the world was left.
std::shared_ptr<Communicator> mpi_communicator();

/// What this build calls: "Open MPI 4.1.4"; empty without MPI.
std::string mpi_library();

}  // namespace graft

#pragma once

#include <memory>

#include "core/device/communicator.h"

namespace graft::cli {

/// Joins the processes that mpirun or srun started together with this one; null where it was
/// started alone. From now on only rank 0 writes to the standard streams, and each rank has its
/// share of the machine's threads, unless they were set before. Throws Error{unsupported} where
/// this build has no MPI, or another one than the launcher: each process would train alone and
/// write the same files.
std::shared_ptr<Communicator> join_ranks(bool sets_threads);

/// Before an error is reported: lets rank 0 speak first, which mostly has the same to say and then
/// ends all, and gives this process its standard streams back. Returns "rank 2: ", or nothing where
/// the process is alone or rank 0. `saves`: rank 0 may be writing meanwhile.
std::string before_report(bool saves);

/// At the end of the program: waits for the other ranks, but after an error ends them all with this
/// exit code.
void leave_ranks();
void end_ranks(int code);

}  // namespace graft::cli

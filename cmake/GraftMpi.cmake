# GRAFT_MPI: ON trains over several processes and machines by MPI (docs/cluster.md). CMake chooses the
# file, and no source asks which it is. GRAFT_MPI_LIBRARY is what to link, or nothing.

set(GRAFT_MPI_LIBRARY "")
if(GRAFT_MPI)
  find_package(MPI COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    message(FATAL_ERROR "GRAFT_MPI is ON, but MPI was not found: call scripts/setup --tests, install "
                        "libopenmpi-dev and openmpi-bin, or set MPI_HOME")
  endif()
  set(GRAFT_MPI_LIBRARY MPI::MPI_CXX)
endif()

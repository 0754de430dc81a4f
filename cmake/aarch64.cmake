# Compiles for 64-bit ARM on another machine: Debian's cross compiler, the libraries that scripts/setup
# --aarch64 has put below aarch64/ of its prefix, all of them archives. What is built runs here by qemu, and
# there as it is.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(graft_aarch64 "${CMAKE_CURRENT_LIST_DIR}/../third_party/aarch64" ABSOLUTE)
if(DEFINED ENV{GRAFT_PREFIX})
  set(graft_aarch64 "$ENV{GRAFT_PREFIX}/aarch64")
endif()
set(GRAFT_PREFIX "${graft_aarch64}" CACHE PATH "Where scripts/setup put onnx for aarch64")

# Libraries and headers of the target alone; programs of this machine; packages of both, for those that
# are headers only.
set(CMAKE_FIND_ROOT_PATH "${graft_aarch64}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
set(ENV{PKG_CONFIG_LIBDIR} "${graft_aarch64}/usr/lib/aarch64-linux-gnu/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${graft_aarch64}")

find_program(GRAFT_QEMU NAMES qemu-aarch64-static qemu-aarch64)
mark_as_advanced(GRAFT_QEMU)
if(GRAFT_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${GRAFT_QEMU};-L;/usr/aarch64-linux-gnu")
endif()

# cpack in the build folder makes graft-<version>-<system>-<processor>.tar.gz and a Debian package.
# Both hold all that is installed; for others' machines, configure with -DGRAFT_NATIVE=OFF.

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_NAME graft)
set(CPACK_PACKAGE_VENDOR "The Graft authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGE_FILE_NAME
    "graft-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "The Graft authors <graft@example.org>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
find_program(GRAFT_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(GRAFT_SHLIBDEPS)
if(GRAFT_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/lib/graft")
endif()
include(CPack)

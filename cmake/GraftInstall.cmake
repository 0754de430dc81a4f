# cmake --install, and the package that find_package(graft) reads.

include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY GRAFT_LIBRARIES)
install(TARGETS ${libraries} graft_all EXPORT graftTargets ARCHIVE DESTINATION lib)
install(EXPORT graftTargets NAMESPACE graft:: DESTINATION lib/cmake/graft)

foreach(folder IN ITEMS core autograd optim io data train)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}" DESTINATION include/graft
            FILES_MATCHING PATTERN "*.h"
            PATTERN "*internal*" EXCLUDE
            PATTERN "core/device/cuda" EXCLUDE
            PATTERN "io/proto" EXCLUDE)
  endif()
endforeach()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/graftConfig.cmake.in" "${PROJECT_BINARY_DIR}/graftConfig.cmake"
  INSTALL_DESTINATION lib/cmake/graft)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/graftConfig.cmake"
              "${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindRE2.cmake"
        DESTINATION lib/cmake/graft)

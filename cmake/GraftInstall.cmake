# cmake --install, the packages that find_package(graft) and pkg-config read, and those of CPack.
#
# Nothing that is installed names a folder of this machine: the prefix may be moved.

include(CMakePackageConfigHelpers)

get_property(graft_installed GLOBAL PROPERTY GRAFT_INSTALLED)
install(TARGETS ${graft_installed} EXPORT graftTargets
        ARCHIVE DESTINATION lib COMPONENT development
        LIBRARY DESTINATION lib COMPONENT runtime NAMELINK_COMPONENT development
        FILE_SET HEADERS DESTINATION include COMPONENT development)
install(EXPORT graftTargets NAMESPACE graft:: DESTINATION lib/cmake/graft COMPONENT development)
if(GRAFT_ONEDNN)
  install(PROGRAMS "${graft_onednn_file}" DESTINATION lib/graft COMPONENT runtime)
endif()

# libgraft.so has all within, or names what it needs of the system.
if(BUILD_SHARED_LIBS)
  set(graft_config graftSharedConfig.cmake.in)
  set(graft_pkgconfig_libraries " -lgraft -Wl,-rpath,\${libdir}")
else()
  set(graft_config graftConfig.cmake.in)
  include(GraftInstallArchives)
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/${graft_config}" "${PROJECT_BINARY_DIR}/graftConfig.cmake"
  INSTALL_DESTINATION lib/cmake/graft)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/graftConfig.cmake"
              "${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
        DESTINATION lib/cmake/graft COMPONENT development)
configure_file("${PROJECT_SOURCE_DIR}/cmake/graft.pc.in" "${PROJECT_BINARY_DIR}/graft.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/graft.pc" DESTINATION lib/pkgconfig COMPONENT development)

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE"
              "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION share/doc/graft COMPONENT runtime)

if(PROJECT_IS_TOP_LEVEL)
  include(GraftPackages)
endif()

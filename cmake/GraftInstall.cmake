# cmake --install, the packages that find_package(graft) and pkg-config read, and those of CPack.
#
# Nothing that is installed names a folder of this machine: the prefix may be moved.

include(CMakePackageConfigHelpers)

get_property(graft_installed GLOBAL PROPERTY GRAFT_LIBRARIES)
install(TARGETS ${graft_installed} graft_headers graft_inference graft_all EXPORT graftTargets
        ARCHIVE DESTINATION lib COMPONENT development
        FILE_SET HEADERS DESTINATION include COMPONENT development)
install(EXPORT graftTargets NAMESPACE graft:: DESTINATION lib/cmake/graft COMPONENT development)

# In the order in which a linker wants them.
set(graft_bundled "")
set(graft_not_bundled "")
foreach(name IN ITEMS onnx onnx_proto)
  get_target_property(archive ONNX::${name} LOCATION)
  graft_bundle(${name} "${archive}")
endforeach()
graft_bundle(protobuf ${GRAFT_ARCHIVE_protobuf})
graft_bundle(z ${GRAFT_ARCHIVE_z})
if(GRAFT_RE2)
  graft_bundle(re2 ${GRAFT_ARCHIVE_re2})
endif()
if(GRAFT_MPI)
  list(APPEND graft_not_bundled mpi)
endif()
if(GRAFT_ONEDNN)
  install(PROGRAMS "${graft_onednn_file}" DESTINATION lib/graft COMPONENT runtime)
endif()

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/graftConfig.cmake.in" "${PROJECT_BINARY_DIR}/graftConfig.cmake"
  INSTALL_DESTINATION lib/cmake/graft)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/graftConfig.cmake"
              "${PROJECT_BINARY_DIR}/graftConfigVersion.cmake"
        DESTINATION lib/cmake/graft COMPONENT development)

set(graft_pkgconfig_libraries "")
set(graft_from_top ${graft_installed})
list(REVERSE graft_from_top)
list(TRANSFORM graft_bundled PREPEND graft_ OUTPUT_VARIABLE graft_archives)
foreach(library IN LISTS graft_from_top graft_archives graft_not_bundled)
  string(APPEND graft_pkgconfig_libraries " -l${library}")
endforeach()
if(GRAFT_ONEDNN)
  string(APPEND graft_pkgconfig_libraries
         " -L\${libdir}/graft -l:libdnnl.so.3 -Wl,-rpath,\${libdir}/graft")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/graft.pc.in" "${PROJECT_BINARY_DIR}/graft.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/graft.pc" DESTINATION lib/pkgconfig COMPONENT development)

install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE"
              "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
        DESTINATION share/doc/graft COMPONENT runtime)

if(PROJECT_IS_TOP_LEVEL)
  include(GraftPackages)
endif()

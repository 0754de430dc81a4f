# What programs that link Graft's archives need beside them: the archives of third parties, installed
# under names of Graft's, and what pkg-config says of all.

# In the order in which a linker wants them.
set(graft_bundled "")
set(graft_not_bundled "")
if(NOT GRAFT_MODELS)
  foreach(name IN ITEMS onnx onnx_proto)
    get_target_property(archive ONNX::${name} LOCATION)
    graft_bundle(${name} "${archive}")
  endforeach()
  graft_bundle(protobuf ${GRAFT_ARCHIVE_protobuf})
endif()
graft_bundle(z ${GRAFT_ARCHIVE_z})
if(GRAFT_RE2)
  graft_bundle(re2 ${GRAFT_ARCHIVE_re2})
endif()
if(GRAFT_MPI)
  list(APPEND graft_not_bundled mpi)
endif()

set(graft_pkgconfig_libraries "")
get_property(graft_from_top GLOBAL PROPERTY GRAFT_LIBRARIES)
list(REVERSE graft_from_top)
list(TRANSFORM graft_bundled PREPEND graft_ OUTPUT_VARIABLE graft_archives)
foreach(library IN LISTS graft_from_top graft_archives graft_not_bundled)
  string(APPEND graft_pkgconfig_libraries " -l${library}")
endforeach()
if(GRAFT_ONEDNN)
  # -ldnnl of graft.pc: what CMake makes of pkg-config's words looks for this name alone.
  file(CREATE_LINK libdnnl.so.3 "${PROJECT_BINARY_DIR}/lib/graft/libdnnl.so" SYMBOLIC)
  install(FILES "${PROJECT_BINARY_DIR}/lib/graft/libdnnl.so" DESTINATION lib/graft
          COMPONENT development)
  string(APPEND graft_pkgconfig_libraries
         " -Wl,-u,gft_get_num_threads -L\${libdir}/graft -ldnnl -Wl,-rpath,\${libdir}/graft")
endif()

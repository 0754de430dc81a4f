# BUILD_SHARED_LIBS: programs link one library, libgraft.so, which holds all of Graft (adr/0067). The
# command and the tests go on with the archives that it is made of.

# graft_shared_library(<archive's target>...): the target graft_shared. What it shows is decided when it
# is linked, by cmake/public_symbols.py, so that objects are the same as those of any other build.
# Versions before 1.0 may change interfaces with the second number, so that is in the soname.
function(graft_shared_library)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  get_target_property(headers graft_headers HEADER_SET)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  set(script "${PROJECT_SOURCE_DIR}/cmake/public_symbols.py")
  set(symbols "${PROJECT_BINARY_DIR}/graft_shared.map")
  add_custom_command(OUTPUT "${symbols}"
    COMMAND Python3::Interpreter "${script}" "${symbols}" "${CMAKE_NM}"
            "${PROJECT_BINARY_DIR}/include/graft" ${files}
    DEPENDS "${script}" ${ARGN} ${headers} COMMENT "Choosing what libgraft.so shows" VERBATIM)
  set(empty "${PROJECT_BINARY_DIR}/graft_shared.cpp")
  file(CONFIGURE OUTPUT "${empty}" CONTENT "// All that is in libgraft.so is in its archives.\n")
  set_source_files_properties("${empty}" PROPERTIES OBJECT_DEPENDS "${symbols}")

  add_library(graft_shared SHARED "${empty}" "${symbols}")
  list(JOIN ARGN "," archives)
  target_link_libraries(graft_shared PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${archives}>"
                        INTERFACE graft_headers)
  target_link_options(graft_shared PRIVATE "LINKER:--version-script=${symbols}"
                      LINKER:--no-undefined LINKER:--gc-sections)
  target_compile_features(graft_shared INTERFACE cxx_std_20)
  set_target_properties(graft_shared PROPERTIES
    LINK_DEPENDS "${symbols}"
    LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${archives}"
    OUTPUT_NAME graft EXPORT_NAME shared
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
    INSTALL_RPATH "$ORIGIN/graft" BUILD_WITH_INSTALL_RPATH ON)
endfunction()

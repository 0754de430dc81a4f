# GRAFT_ONEDNN is what to link for oneDNN: graft_onednn, or nothing. That is a copy of the library
# found, in lib/graft of the build, whose loops run on Graft's threads (onednn_threads.py); it is
# installed with Graft.

set(GRAFT_ONEDNN "")
set(graft_onednn_version none)
set(graft_onednn_copied "${GRAFT_ONEDNN_COPIED}")
unset(GRAFT_ONEDNN_COPIED CACHE)
if(NOT GRAFT_WITH_ONEDNN)
  return()
endif()

# graft_copy_onednn(<variable>): sets it to why there is no copy; empty if there is one.
function(graft_copy_onednn variable)
  set(${variable} "" PARENT_SCOPE)
  get_target_property(type DNNL::dnnl TYPE)
  if(NOT type STREQUAL "SHARED_LIBRARY")
    set(${variable} "it is not a shared library" PARENT_SCOPE)
    return()
  endif()
  find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
  if(NOT Python3_FOUND)
    set(${variable} "its copy is made by Python 3, which was not found" PARENT_SCOPE)
    return()
  endif()
  get_target_property(found DNNL::dnnl LOCATION)
  set(script "${PROJECT_SOURCE_DIR}/cmake/onednn_threads.py")
  set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               "${script}" "${found}")
  if(EXISTS "${graft_onednn_file}" AND "${graft_onednn_file}" IS_NEWER_THAN "${found}" AND
     "${graft_onednn_file}" IS_NEWER_THAN "${script}" AND "${graft_onednn_copied}" STREQUAL "${found}")
    return()
  endif()
  file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/lib/graft")
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${script}" "${found}" "${graft_onednn_file}"
                  RESULT_VARIABLE result ERROR_VARIABLE message ERROR_STRIP_TRAILING_WHITESPACE)
  if(result)
    set(${variable} "${message}" PARENT_SCOPE)
  endif()
endfunction()

# What was found within the set-up's folder is looked for again: scripts/setup --onednn may have run.
cmake_path(IS_PREFIX GRAFT_PREFIX "${dnnl_DIR}" NORMALIZE graft_is_of_setup)
if(graft_is_of_setup)
  unset(dnnl_DIR CACHE)
endif()
find_package(dnnl 3 CONFIG QUIET)
set(graft_onednn_problem "it was not found: run scripts/setup")
if(dnnl_FOUND)
  set(graft_onednn_file "${PROJECT_BINARY_DIR}/lib/graft/libdnnl.so.3")
  graft_copy_onednn(graft_onednn_problem)
endif()
if(NOT graft_onednn_problem)
  add_library(graft_onednn SHARED IMPORTED GLOBAL)
  set_target_properties(graft_onednn PROPERTIES IMPORTED_LOCATION "${graft_onednn_file}"
                        IMPORTED_SONAME libdnnl.so.3)
  get_target_property(graft_onednn_headers DNNL::dnnl INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(graft_onednn SYSTEM INTERFACE "${graft_onednn_headers}")
  target_link_options(graft_onednn INTERFACE LINKER:-u,gft_get_num_threads)  # as graftConfig.cmake says
  set(GRAFT_ONEDNN graft_onednn)
  set(graft_onednn_version ${dnnl_VERSION})
  get_target_property(graft_onednn_copied DNNL::dnnl LOCATION)
  set(GRAFT_ONEDNN_COPIED "${graft_onednn_copied}" CACHE INTERNAL "What lib/graft holds a copy of")
elseif(NOT GRAFT_WITH_ONEDNN STREQUAL "AUTO")
  message(FATAL_ERROR "GRAFT_WITH_ONEDNN is ON, but oneDNN 3 cannot be used: ${graft_onednn_problem}")
elseif(dnnl_FOUND)
  message(WARNING "without oneDNN: ${graft_onednn_problem}")
endif()

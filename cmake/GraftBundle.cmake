# What Graft's libraries are linked with goes where they are installed, so that programs need nothing
# else there. Archives get names of their own; what is found as a shared library alone is linked by
# its name, and has to be on the machine.

# graft_link_statically(<target> <archive>): the imported target becomes the archive, if there is one.
function(graft_link_statically target archive)
  if(NOT GRAFT_STATIC_DEPENDENCIES OR NOT TARGET ${target})
    return()
  endif()
  string(MAKE_C_IDENTIFIER "GRAFT_ARCHIVE_${archive}" variable)
  find_library(${variable} NAMES ${archive})
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(STATUS "no ${archive}: ${target} is linked as a shared library")
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${${variable}}"
                          INTERFACE_COMPILE_OPTIONS -pthread)
    return()
  endif()
  foreach(configuration IN ITEMS "" _NONE _NOCONFIG _RELEASE _DEBUG)
    get_target_property(location ${target} IMPORTED_LOCATION${configuration})
    if(location OR configuration STREQUAL "")
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION${configuration} "${${variable}}")
    endif()
  endforeach()
endfunction()

# graft_file_of(<variable> <target>): the file that the imported target is.
function(graft_file_of variable target)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    get_target_property(file ${target} INTERFACE_LINK_LIBRARIES)
    if(TARGET "${file}")
      get_target_property(file ${file} INTERFACE_LINK_LIBRARIES)
    endif()
    list(GET file 0 file)
  else()
    get_target_property(file ${target} LOCATION)
  endif()
  set(${variable} "${file}" PARENT_SCOPE)
endfunction()

# graft_bundle(<name> <target>): installs the target's archive as libgraft_<name>.a and adds it to
# graft_bundled; a shared library goes to graft_not_bundled, by its name.
macro(graft_bundle name target)
  graft_file_of(graft_bundled_file ${target})
  if(graft_bundled_file MATCHES "\\.a$")
    install(FILES "${graft_bundled_file}" DESTINATION lib RENAME libgraft_${name}.a
            COMPONENT development)
    list(APPEND graft_bundled ${name})
  else()
    cmake_path(GET graft_bundled_file STEM graft_bundled_name)
    string(REGEX REPLACE "^lib" "" graft_bundled_name "${graft_bundled_name}")
    list(APPEND graft_not_bundled ${graft_bundled_name})
  endif()
endmacro()

# What Graft's libraries are linked with. What is installed takes the archives of third parties where
# there are any: the command has them within, and they go beside Graft's own under other names, for
# programs. In the build tests, other programs and modules take the shared libraries; a module could
# not take the archives, which a system makes for programs.

# graft_prefer_archive(<name> <target>): makes the target graft_<name>, which stands for the imported
# one and becomes lib<name>.a in targets with the property GRAFT_LINKS_ARCHIVES.
function(graft_prefer_archive name target)
  add_library(graft_${name} INTERFACE)
  target_link_libraries(graft_${name} INTERFACE ${target})
  if(NOT GRAFT_STATIC_DEPENDENCIES)
    return()
  endif()
  find_library(GRAFT_ARCHIVE_${name} NAMES lib${name}.a)
  mark_as_advanced(GRAFT_ARCHIVE_${name})
  if(NOT GRAFT_ARCHIVE_${name})
    message(STATUS "no lib${name}.a: the graft command is linked with the shared library")
    return()
  endif()
  set_target_properties(graft_${name} PROPERTIES INTERFACE_LINK_LIBRARIES
    "$<IF:$<BOOL:$<TARGET_PROPERTY:GRAFT_LINKS_ARCHIVES>>,${GRAFT_ARCHIVE_${name}},${target}>")
endfunction()

# graft_bundle(<name> [archive]): installs the archive as libgraft_<name>.a and adds the name to
# graft_bundled; without one, adds it to graft_not_bundled.
macro(graft_bundle name)
  if("${ARGN}" MATCHES "\\.a$")
    install(FILES "${ARGN}" DESTINATION lib RENAME libgraft_${name}.a COMPONENT development)
    list(APPEND graft_bundled ${name})
  else()
    list(APPEND graft_not_bundled ${name})
  endif()
endmacro()

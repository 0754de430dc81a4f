# graft_public_headers(<variable>): lays what programs include below include/ of the build folder,
# and sets the variable to those files.
#
# The headers of graft/ are the public ones. They and what they include, directly or not, are
# copied: graft/x.h to graft/x.h, any other folder/y.h to graft/detail/folder/y.h, with includes
# that say so. Thus the only name that a program sees is graft/ (adr/0019). Copies follow their
# originals when CMake runs, which it does by itself whenever one of them has changed.
function(graft_public_headers variable)
  set(include_folder "${PROJECT_BINARY_DIR}/include")
  file(GLOB waiting CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/graft/*.h")
  set(seen ${waiting})
  set(copies "")

  while(waiting)
    list(POP_FRONT waiting header)
    file(READ "${PROJECT_SOURCE_DIR}/${header}" text)
    string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
    foreach(include IN LISTS includes)
      string(REGEX REPLACE "#include \"(.+)\"" "\\1" included "${include}")
      if(NOT included IN_LIST seen)
        list(APPEND seen "${included}")
        list(APPEND waiting "${included}")
      endif()
    endforeach()
    string(REGEX REPLACE "#include \"graft/([^\"]+)\"" "#include <graft/\\1>" text "${text}")
    string(REGEX REPLACE "#include \"([^\"]+)\"" "#include <graft/detail/\\1>" text "${text}")

    if(header MATCHES "^graft/")
      set(copy "${include_folder}/${header}")
    else()
      set(copy "${include_folder}/graft/detail/${header}")
    endif()
    list(APPEND copies "${copy}")
    set(old_text "")
    if(EXISTS "${copy}")
      file(READ "${copy}" old_text)
    endif()
    if(NOT text STREQUAL old_text)  # what has not changed keeps its time, so nothing is rebuilt
      file(WRITE "${copy}" "${text}")
    endif()
    set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                 "${PROJECT_SOURCE_DIR}/${header}")
  endwhile()

  file(GLOB_RECURSE present "${include_folder}/*")
  foreach(file IN LISTS present)
    if(NOT file IN_LIST copies)
      file(REMOVE "${file}")
    endif()
  endforeach()
  set(${variable} "${copies}" PARENT_SCOPE)
endfunction()

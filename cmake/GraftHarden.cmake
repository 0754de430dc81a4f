# What a mistake of ours in memory must not become: a way in. SECURITY.md says what is promised.

# All programs and libraries: addresses that nobody knows, and tables of functions that are filled
# before main and then read-only.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()

# graft_harden(<target>...): for what reads bytes from outside, the stack is guarded, and calls that
# copy memory check its size where the compiler knows it. Kernels do without: they get shapes that
# have been checked, and are not to become slower.
function(graft_harden)
  if(GRAFT_SANITIZE)
    return()  # these check more
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()  # programs may be left out
    endif()
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>
      "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release,RelWithDebInfo>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
  endforeach()
endfunction()

# What every Graft target is compiled with.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Kernels without optimisation take ten times as long: a parent that says nothing gets -O2.
set(graft_optimisation "")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "-O")
  set(graft_optimisation -O2)
  message(STATUS "no CMAKE_BUILD_TYPE: Graft is compiled with -O2")
endif()

find_program(GRAFT_CCACHE ccache)
if(GRAFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${GRAFT_CCACHE}")
endif()

# NaN and infinity keep their meaning, so no -ffast-math; what it gives without that is taken.
# Designated initialisers leave fields to their defaults by intent. Warnings that rest on the
# optimiser's guesses, often wrong in GCC 12, never stop a build.
set(graft_compile_options
    -fno-math-errno -fno-trapping-math
    -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)

if(GRAFT_NATIVE)
  list(APPEND graft_compile_options -march=native)
endif()

# GCC 12.2 with AVX-512 turns a 32-byte constant whose upper words are zero into a broadcast of the
# lowest one: std::vector<std::int64_t>{1, 1, 0, 0} holds 1, 1, 1, 1 (config/i386/i386-expand.cc,
# ix86_convert_const_wide_int_to_broadcast, counts only the words that are not zero). Copies by
# pieces of 16 bytes never meet that.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-mmove-max=128 -mstore-max=128" GRAFT_HAS_MOVE_MAX)
if(GRAFT_HAS_MOVE_MAX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND graft_compile_options -mmove-max=128 -mstore-max=128)
endif()
if(GRAFT_WERROR)
  list(APPEND graft_compile_options -Werror
       $<$<CXX_COMPILER_ID:GNU>:-Wno-error=array-bounds>
       $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>
       $<$<CXX_COMPILER_ID:GNU>:-Wno-error=stringop-overflow>
       $<$<CXX_COMPILER_ID:GNU>:-Wno-error=stringop-overread>)
endif()
# Four checks of the undefined-behaviour sanitizer, those of each pointer, take a quarter to two fifths
# of the time to compile. They stay where others' bytes are read (graft_check_pointers, adr/0072).
set(graft_pointer_checks null,alignment,object-size,vptr)
if(GRAFT_SANITIZE)
  set(graft_sanitize_options -fsanitize=${GRAFT_SANITIZE} -fno-sanitize-recover=all
                             -fno-omit-frame-pointer)
  if(GRAFT_SANITIZE MATCHES "undefined")
    list(APPEND graft_sanitize_options -fno-sanitize=${graft_pointer_checks})
  endif()
endif()
# Tests are compiled often and run for moments.
set(graft_test_options -O0)

# graft_check_pointers(<target>...): with all checks of the undefined-behaviour sanitizer.
function(graft_check_pointers)
  if(GRAFT_SANITIZE MATCHES "undefined")
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE -fsanitize=${graft_pointer_checks})
    endforeach()
  endif()
endfunction()

# Of OpenMP only the marks on loops are used, `omp simd`: threads are Graft's own.
add_library(graft_loop_marks INTERFACE)
target_compile_options(graft_loop_marks INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)

# graft_for_size(<target>): what runs once a process or a plan takes 0.6 of the room at -Os, 0.7 of the
# time to compile, and is not noticed to be slower (adr/0065).
function(graft_for_size target)
  target_compile_options(${target} PRIVATE
                         $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Os>)
endfunction()

# graft_leave_out_samples(<target>): code of this target that only tests call is part of no program
# (core/base/for_tests.h) where there are none.
function(graft_leave_out_samples target)
  if(NOT GRAFT_BUILD_TESTS)
    target_compile_definitions(${target} PRIVATE GRAFT_WITHOUT_TESTS)
  endif()
endfunction()

# Gives one target the options above.
function(graft_target_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${graft_optimisation};${graft_compile_options};${graft_sanitize_options}>")
  target_compile_definitions(${target} PRIVATE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
  target_link_options(${target} PRIVATE ${graft_sanitize_options})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:graft_loop_marks>)
endfunction()

# Kernels for several sets of instructions in one library, of which one is chosen at start (adr/0043).
include(CheckCXXSourceCompiles)

# Loops over the 16 registers of AVX2 that begin a cache line are up to 4 % faster, those over the 32
# of AVX-512 are not (adr/0081).
set(graft_loops_avx2 -falign-loops=64)
set(graft_isa_flags_avx2 -march=x86-64-v3 -mtune=haswell ${graft_loops_avx2})
# Vectors of the compiler's own have 256 bits, as where it tunes for such processors: with 512 many of
# them lower their clock. Those of core/ops/kernels/lanes.h have 512.
set(graft_isa_flags_avx512 -march=x86-64-v4 -mtune=icelake-server -mprefer-vector-width=256)

# graft_align_loops(<target>): the same in a build for this machine's CPU alone.
function(graft_align_loops target)
  if(NOT GRAFT_NATIVE)
    return()
  endif()
  set(CMAKE_REQUIRED_FLAGS -march=native)
  check_cxx_source_compiles("
#if !defined(__AVX2__) || defined(__AVX512F__)
#error
#endif
int main() {}" GRAFT_NATIVE_HAS_AVX2_ALONE)
  if(GRAFT_NATIVE_HAS_AVX2_ALONE)
    target_compile_options(${target} PRIVATE
                           $<$<COMPILE_LANGUAGE:CXX>:${graft_loops_avx2}>)
  endif()
endfunction()

# GNU ld joins objects; beside Clang CMake may have found another linker.
set(graft_joiner "${CMAKE_LINKER}")
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_program(GRAFT_GNU_LD ld.bfd)
  mark_as_advanced(GRAFT_GNU_LD)
  set(graft_joiner "${GRAFT_GNU_LD}")
endif()

# graft_why_one_isa(<variable>): why a portable build has kernels for any processor alone; empty where
# it has more.
function(graft_why_one_isa variable)
  set(why "")
  execute_process(COMMAND "${graft_joiner}" --help OUTPUT_VARIABLE linker_help ERROR_QUIET)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$" OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(why "the processor is ${CMAKE_SYSTEM_PROCESSOR}, and there are more for x86_64 alone")
  elseif(GRAFT_SANITIZE)
    set(why "GRAFT_SANITIZE is set")
  elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(why "CMAKE_BUILD_TYPE is Debug")
  elseif(NOT linker_help MATCHES "force-group-allocation" OR NOT CMAKE_OBJCOPY)
    set(why "GNU ld and objcopy are missing")
  else()
    foreach(isa IN ITEMS avx2 avx512)
      list(JOIN graft_isa_flags_${isa} " " flags)
      check_cxx_compiler_flag("${flags}" GRAFT_COMPILES_${isa})
      if(NOT GRAFT_COMPILES_${isa})
        set(why "the compiler does not take ${flags}")
      endif()
    endforeach()
  endif()
  set(${variable} "${why}" PARENT_SCOPE)
endfunction()

# graft_isas(<variable>): the sets that this build has kernels for, in rising order.
function(graft_isas variable)
  if(GRAFT_NATIVE)
    set(${variable} native PARENT_SCOPE)
    return()
  endif()
  graft_why_one_isa(why)
  if(why)
    message(STATUS "kernels for any processor alone: ${why}")
    set(${variable} baseline PARENT_SCOPE)
  else()
    set(${variable} baseline avx2 avx512 PARENT_SCOPE)
  endif()
endfunction()

# graft_add_isa(<isa> source...): adds to graft_ops what the sources are when compiled for these
# instructions, as one object that shows graft_kernels_<isa> and nothing else.
#
# Inline functions, ours and those of the standard library and of Eigen, are compiled in many files,
# and a linker keeps one copy of each. That must not be one of wide instructions for all: so within
# the object the groups that such copies are known by are dissolved and the names made local, and what
# is compiled for this set is called by this set alone. What is not reached from that name falls out.
# All code lies in a section of its own, .text_<isa>, in programs too: tests/scripts/isa_test.py looks
# there.
function(graft_add_isa isa)
  set(target graft_kernels_${isa})
  add_library(${target} OBJECT ${ARGN})
  graft_target_options(${target})
  graft_see_sources(${target})
  get_target_property(libraries graft_ops LINK_LIBRARIES)
  target_link_libraries(${target} PRIVATE ${libraries})
  # objcopy leaves names global that are unique in the process: GCC makes them of some statics.
  target_compile_options(${target} PRIVATE ${graft_isa_flags_${isa}}
                         "$<$<CXX_COMPILER_ID:GNU>:-Wno-psabi;-fno-gnu-unique>"
                         -ffunction-sections -fdata-sections -fno-lto)
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}.ld")
  file(CONFIGURE OUTPUT "${script}" @ONLY CONTENT "\
SECTIONS {
  .text_@isa@ 0 : { *(.text .text.*) }
  .eh_frame 0 : { KEEP(*(.eh_frame)) }
  .init_array 0 : { *(.init_array .init_array.* .ctors .ctors.*) }
}
ASSERT(SIZEOF(.init_array) == 0, \"kernels hold objects that are made when the program is loaded: \
that would run @isa@ code on any processor; make them constexpr, or static in a function\")
")
  set(joined "${CMAKE_CURRENT_BINARY_DIR}/${target}_joined.o")
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.o")
  add_custom_command(OUTPUT "${object}"
    COMMAND "${graft_joiner}" -r --force-group-allocation --gc-sections -e ${target} -T "${script}"
            -o "${joined}" "$<TARGET_OBJECTS:${target}>"
    COMMAND "${CMAKE_OBJCOPY}" --keep-global-symbol=${target} "${joined}" "${object}"
    DEPENDS ${target} "$<TARGET_OBJECTS:${target}>" "${script}"
    COMMENT "Joining the kernels for ${isa}"
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(graft_ops PRIVATE "${object}")
endfunction()

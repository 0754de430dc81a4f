# GRAFT_MINIMAL: programs that hold what they run and little else (docs/minimal.md, adr/0075).
include(CheckCXXSourceCompiles)

if(GRAFT_MINIMAL)
  foreach(library IN ITEMS ONEDNN RE2)
    if(GRAFT_WITH_${library} STREQUAL "ON")
      message(FATAL_ERROR "GRAFT_MINIMAL is ON, which does without: set GRAFT_WITH_${library} to OFF or AUTO")
    endif()
    set(GRAFT_WITH_${library} OFF)
  endforeach()
elseif(GRAFT_MODELS)
  message(FATAL_ERROR "GRAFT_MODELS names models for a small build: set GRAFT_MINIMAL to ON too")
endif()
if(GRAFT_MODELS AND (GRAFT_BUILD_TOOLS OR GRAFT_BUILD_TESTS OR GRAFT_BUILD_PYTHON))
  message(FATAL_ERROR "GRAFT_MODELS leaves out ops and libonnx, which the command, the tests and the "
                      "Python package need: set GRAFT_BUILD_TOOLS and GRAFT_BUILD_TESTS to OFF")
endif()

set(blocks_of_minimal conv_tiles conv_tiles_weight panel_product pool_channels_last pool_rows
    product_update product_update_kernels strided window)

# graft_minimal_options(<target>): each function by itself, so that those which nothing calls can go, and
# small code, but for the blocks that kernels spend their time in: the files of core/ops that register
# nothing, or tiles.
function(graft_minimal_options target)
  if(NOT GRAFT_MINIMAL)
    return()
  endif()
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  if(NOT target STREQUAL "graft_ops")
    graft_for_size(${target})
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  # Blocks of sums and pools: 0.1 MB less than by -O3, and a LeNet's steps take as long.
  list(JOIN blocks_of_minimal "|" names)
  set(blocks ${sources})
  list(FILTER blocks INCLUDE REGEX "/(${names})\\.cpp$")
  set_source_files_properties(${blocks} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O2>")
  list(FILTER sources INCLUDE REGEX "_cpu\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "/conv_(columns_)?cpu\\.cpp$")
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS
                              "$<$<CONFIG:Release>:-Os>")
endfunction()

# graft_packs_relocations(<cache variable>): whether addresses to relocate may be packed, 40 KB less:
# glibc's loader unpacks them since 2.36, and older ones refuse the program.
function(graft_packs_relocations variable)
  set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,-z,pack-relative-relocs)
  check_cxx_source_compiles("
#include <features.h>
#if !defined(__GLIBC__) || !__GLIBC_PREREQ(2, 36)
#error \"an older loader\"
#endif
int main() {}" ${variable})
endfunction()

# graft_minimal_link(<target>): who links it drops what nothing calls, and brings libstdc++ within, but for
# its handler of exceptions that nobody catches: that of core/base/minimal is asked for before it.
function(graft_minimal_link target)
  if(GRAFT_MINIMAL)
    target_link_options(${target} INTERFACE -Wl,--gc-sections -static-libstdc++ -static-libgcc
                        -Wl,--undefined=_ZN9__gnu_cxx27__verbose_terminate_handlerEv)
    graft_packs_relocations(GRAFT_PACKS_RELOCATIONS)
    if(GRAFT_PACKS_RELOCATIONS)
      target_link_options(${target} INTERFACE -Wl,-z,pack-relative-relocs)
    endif()
  endif()
endfunction()

# graft_minimal_program(<target>): a program of this repository, with the archives of third parties.
function(graft_minimal_program target)
  if(GRAFT_MINIMAL)
    graft_for_size(${target})
    set_target_properties(${target} PROPERTIES GRAFT_LINKS_ARCHIVES ON)
  endif()
endfunction()

# graft_list_ops(<model> <variable>): sets it to the list that GRAFT_COMMAND makes of a model.
function(graft_list_ops model variable)
  if(NOT GRAFT_COMMAND)
    message(FATAL_ERROR "GRAFT_MODELS has ${model}, which a graft command reads that has all ops: set "
                        "GRAFT_COMMAND to one, or name what `graft ops` printed instead")
  endif()
  cmake_path(GET model STEM name)
  set(list "${PROJECT_BINARY_DIR}/${name}.ops")
  execute_process(COMMAND "${GRAFT_COMMAND}" ops "${model}" OUTPUT_FILE "${list}"
                  RESULT_VARIABLE result ERROR_VARIABLE problem ERROR_STRIP_TRAILING_WHITESPACE)
  if(result)
    message(FATAL_ERROR "GRAFT_MODELS: ${GRAFT_COMMAND} ops ${model}: ${problem}")
  endif()
  set(${variable} "${list}" PARENT_SCOPE)
endfunction()

# What models need: the files of rows and kernels, the types and the passes that the list names which
# `graft ops` prints.
# GRAFT_MODELS holds models, or such lists.
set(graft_chosen "")
if(GRAFT_MODELS)
  find_program(GRAFT_COMMAND graft DOC "A graft command with all ops, which reads GRAFT_MODELS")
endif()
foreach(model IN LISTS GRAFT_MODELS)
  cmake_path(ABSOLUTE_PATH model BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${model}")
  if(NOT EXISTS "${model}")
    message(FATAL_ERROR "GRAFT_MODELS: there is no file ${model}")
  elseif(model MATCHES "\\.onnx$")
    graft_list_ops("${model}" model)
  endif()
  file(STRINGS "${model}" lines REGEX "^(file|dtype|pass|op) ")
  foreach(kind IN ITEMS file dtype pass op)
    if(NOT lines MATCHES "(^|;)${kind} ")
      message(FATAL_ERROR "GRAFT_MODELS: ${model} has no line '${kind} ...'; wanted a model, or what graft ops "
                          "of this version prints")
    endif()
  endforeach()
  list(APPEND graft_chosen ${lines})
endforeach()
list(REMOVE_DUPLICATES graft_chosen)

# graft_is_chosen(<name> <variable>): whether this build takes a file of core/ops that registers.
function(graft_is_chosen name variable)
  if(NOT GRAFT_MODELS OR "file ${name}" IN_LIST graft_chosen)
    set(${variable} ON PARENT_SCOPE)
  else()
    set(${variable} OFF PARENT_SCOPE)
  endif()
endfunction()

# graft_chosen_names(<kind> <variable>): the names that the lists have of a kind, "dtype" or "pass".
function(graft_chosen_names kind variable)
  set(names ${graft_chosen})
  list(FILTER names INCLUDE REGEX "^${kind} ")
  list(TRANSFORM names REPLACE "^${kind} " "")
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

# graft_choose_dtypes(<target>): kernels of this target are for the types of the models alone.
function(graft_choose_dtypes target)
  if(GRAFT_MODELS)
    graft_chosen_names(dtype dtypes)
    list(TRANSFORM dtypes REPLACE "^bool$" "boolean")
    list(TRANSFORM dtypes PREPEND "graft::DType::")
    list(JOIN dtypes "," dtypes)
    target_compile_definitions(${target} PRIVATE "GRAFT_KERNEL_DTYPES=${dtypes}")
  endif()
endfunction()

# graft_choose_passes(<target>): the lists of this target run the passes alone that change the models.
function(graft_choose_passes target)
  if(GRAFT_MODELS)
    graft_chosen_names(pass passes)
    list(TRANSFORM passes REPLACE "(.+)" "\"\\1\"")
    list(JOIN passes "," passes)
    target_compile_definitions(${target} PRIVATE "GRAFT_PASSES=${passes}")
  endif()
endfunction()

# graft_wire_messages(<variable>): makes the classes of io/wire/onnx.messages in a folder of the build,
# below which io/wire/onnx_messages.h and .cpp lie; sets the variable to it.
function(graft_wire_messages variable)
  set(folder "${PROJECT_BINARY_DIR}/wire/io/wire")
  set(list "${PROJECT_SOURCE_DIR}/io/wire/onnx.messages")
  set(script "${PROJECT_SOURCE_DIR}/cmake/wire_messages.py")
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  file(MAKE_DIRECTORY "${folder}")
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${script}" "${list}" "${folder}/onnx_messages.h"
                          "${folder}/onnx_messages.cpp" COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}" "${script}")
  set(${variable} "${PROJECT_BINARY_DIR}/wire" PARENT_SCOPE)
endfunction()

# graft_own_messages(<target>): io/proto of this target works on the messages of io/wire.
function(graft_own_messages target)
  graft_wire_messages(folder)
  set(lines ${graft_chosen})
  list(FILTER lines INCLUDE REGEX "^op ")
  list(TRANSFORM lines REPLACE "^op (.*)$" "      \"\\1\",\n")
  list(JOIN lines "" lines)
  file(CONFIGURE OUTPUT "${folder}/op_lines.cpp" @ONLY CONTENT "\
// Made of GRAFT_MODELS by cmake/GraftMinimal.cmake.
#include \"io/wire/op_lines.h\"

std::span<const std::string_view> graft::onnx::op_lines() {
  static constexpr std::string_view all[] = {
@lines@  };
  return all;
}
")
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "/proto/(checker|op_schemas|op_types|op_forms|standard_functions|format)\\.cpp$")
  set_property(TARGET ${target} PROPERTY SOURCES ${sources} "${folder}/io/wire/onnx_messages.cpp"
               "${folder}/op_lines.cpp")
  target_include_directories(${target} PRIVATE "${folder}")
  target_compile_definitions(${target} PRIVATE GRAFT_OWN_MESSAGES)
endfunction()

# The functions that a folder's CMakeLists.txt is made of.

# graft_sources(<variable> [folder...]): the *.cpp of the current folder and the folders named.
# A *_onednn.cpp is left out without oneDNN, a no_onednn.cpp with it; so are *_cuda.cpp and *_cuda.cu
# without CUDA, and no_cuda.cpp with it; of RE2, regex_re2.cpp and no_re2.cpp; and no_mpi.cpp with MPI.
function(graft_sources variable)
  set(patterns "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(folder IN LISTS ARGN)
    list(APPEND patterns "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(GRAFT_ONEDNN)
    list(FILTER sources EXCLUDE REGEX "/no_onednn\\.cpp$")
  else()
    set(stand_ins ${sources})
    list(FILTER stand_ins INCLUDE REGEX "/no_onednn\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "(/onednn[^/]*|_onednn)\\.cpp$")
    list(APPEND sources ${stand_ins})
  endif()
  if(GRAFT_RE2)
    list(FILTER sources EXCLUDE REGEX "/no_re2\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/regex_re2\\.cpp$")
  endif()
  if(GRAFT_MPI)
    list(FILTER sources EXCLUDE REGEX "/no_mpi\\.cpp$")
  endif()
  graft_cuda_sources(sources ${ARGN})
  set(${variable} "${sources}" PARENT_SCOPE)
endfunction()

# graft_see_sources(<target>): lets its sources, and no one else's, write includes from the root of
# the repository. Programs that lack this see <graft/...> alone.
function(graft_see_sources target)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  set_target_properties(${target} PROPERTIES GRAFT_SEES_SOURCES ON)
endfunction()

# graft_unity(<target>): with GRAFT_UNITY its sources are compiled eight at a time, for headers take
# most of the time. The files of a folder have to compile as one, for a new file shifts the batches.
function(graft_unity target)
  if(GRAFT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    # GCC takes what is included for a header, where names without linkage would be another's.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# graft_precompile(<target> <header>...): with GRAFT_PRECOMPILE its sources read these headers from a file
# that is compiled once. GCC refuses it for sources with options of their own: those skip it.
function(graft_precompile target)
  if(GRAFT_PRECOMPILE AND NOT GRAFT_MINIMAL)  # small builds compile some sources by other options
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# graft_library(<name> [FOLDERS folder...] [DEPENDS name...] [PRIVATE target...] [ALONE])
#
# Static library graft_<name> of the folder's sources (and those of FOLDERS below it). DEPENDS are
# Graft's own libraries, by <name>, and reach who links this one; PRIVATE is third party, for which
# graft::third_party stands where Graft is installed. Sources are compiled as graft_unity says; but
# for ALONE, where files give one name to different things, or what is inlined, and so the speed,
# hangs on the file.
#
#   graft_library(graph DEPENDS tensor PRIVATE ZLIB::ZLIB)
function(graft_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALONE" "" "FOLDERS;DEPENDS;PRIVATE")
  set(target graft_${name})
  graft_sources(sources ${arg_FOLDERS})
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  graft_target_options(${target})
  graft_see_sources(${target})
  graft_use_cuda(${target})
  graft_minimal_options(${target})
  if(NOT arg_ALONE)
    graft_unity(${target})
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND graft_)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS})
  if(arg_PRIVATE)
    target_link_libraries(${target} PRIVATE "$<BUILD_INTERFACE:${arg_PRIVATE}>"
                          $<INSTALL_INTERFACE:graft::third_party>)
  endif()
  set_property(GLOBAL APPEND PROPERTY GRAFT_LIBRARIES ${target})
endfunction()

# graft_umbrella(): what programs link. Each brings the public headers: graft::graft, all libraries in
# one name; graft::train; graft::inference, without what trains. With BUILD_SHARED_LIBS all three are
# libgraft.so. graft_all is the archives, for what stands in this repository.
function(graft_umbrella)
  get_property(libraries GLOBAL PROPERTY GRAFT_LIBRARIES)
  graft_public_headers(headers)
  add_library(graft_headers INTERFACE)
  target_sources(graft_headers INTERFACE
                 FILE_SET HEADERS BASE_DIRS "${PROJECT_BINARY_DIR}/include" FILES ${headers})
  add_library(graft_all INTERFACE)
  target_link_libraries(graft_all INTERFACE graft_headers ${libraries})
  graft_minimal_link(graft_all)
  target_include_directories(graft_train INTERFACE
    "$<BUILD_INTERFACE:$<$<NOT:$<BOOL:$<TARGET_PROPERTY:GRAFT_SEES_SOURCES>>>:${PROJECT_BINARY_DIR}/include>>"
    $<INSTALL_INTERFACE:include>)
  set(faces graft_headers)
  if(BUILD_SHARED_LIBS)
    graft_shared_library(${libraries})
    list(APPEND faces graft_shared)
    graft_face(graft graft_shared)
    graft_face(train graft_shared)
    graft_face(inference graft_shared)
    list(APPEND faces graft_face_train)
  else()
    graft_face(graft graft_all)
    graft_face(inference graft_headers graft_layers graft_runtime graft_io)
    add_library(graft::train ALIAS graft_train)
    list(APPEND faces ${libraries} graft_all)
  endif()
  list(APPEND faces graft_face_graft graft_face_inference)
  set_property(GLOBAL PROPERTY GRAFT_INSTALLED ${faces})
  set_target_properties(graft_headers PROPERTIES EXPORT_NAME headers)
  set_target_properties(graft_all PROPERTIES EXPORT_NAME all)
endfunction()

# graft_face(<name> <target>...): the target graft::<name>, which links the others.
function(graft_face name)
  add_library(graft_face_${name} INTERFACE)
  target_link_libraries(graft_face_${name} INTERFACE ${ARGN})
  add_library(graft::${name} ALIAS graft_face_${name})
  set_target_properties(graft_face_${name} PROPERTIES EXPORT_NAME ${name})
endfunction()

# graft_program(<name> FOLDER <folder in the build tree> SOURCES file... LINK target...)
#
# It is linked with the run path that it has when installed, which finds lib/ from bin/ and from the
# folders of the build, where libgraft.so lies too: CMake would pad that of the build with empty
# elements, which the loader takes as the current folder.
function(graft_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "SOURCES;LINK")
  add_executable(${name} ${arg_SOURCES})
  graft_target_options(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINK})
  graft_minimal_program(${name})
  set(run_path "$ORIGIN/../lib/graft:$ORIGIN/lib/graft")
  if(BUILD_SHARED_LIBS)
    string(APPEND run_path ":$ORIGIN/../lib")
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${arg_FOLDER}"
    INSTALL_RPATH "${run_path}"
    BUILD_WITH_INSTALL_RPATH ON)
endfunction()

# graft_tool(<name> SOURCES file... LINK target...): a program at the top of the build.
function(graft_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  graft_program(${name} SOURCES ${arg_SOURCES} LINK ${arg_LINK})
  graft_see_sources(${name})
  set_target_properties(${name} PROPERTIES GRAFT_LINKS_ARCHIVES ON)
  if(GRAFT_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION bin COMPONENT runtime)
  endif()
endfunction()

# graft_examples(): every *.cpp of the folder is a program in examples/ of the build.
function(graft_examples)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    graft_program(${name} FOLDER examples SOURCES ${source} LINK graft::graft)
  endforeach()
endfunction()

# graft_precompile_tests(<test>): GoogleTest's headers, compiled once for all tests, beside a program
# that has nothing else: 115 MB, and 12 s of a processor.
function(graft_precompile_tests test)
  if(NOT TARGET graft_test_headers)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "int main() {}\n")
    add_executable(graft_test_headers EXCLUDE_FROM_ALL "${source}")
    graft_target_options(graft_test_headers)
    target_compile_options(graft_test_headers PRIVATE ${graft_test_options})
    target_link_libraries(graft_test_headers PRIVATE GTest::gmock GTest::gtest_main)
    target_precompile_headers(graft_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${test} REUSE_FROM graft_test_headers)
endfunction()

# graft_test(<folder> LINK target...): one GoogleTest program of the *_test.cpp (and helpers) below
# a folder. Tests run in the repository's root and carry the folder's name as label.
function(graft_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
  if(NOT sources MATCHES "_test\\.cpp")
    message(FATAL_ERROR "no *_test.cpp in ${CMAKE_CURRENT_SOURCE_DIR}/${folder}")
  endif()
  set(name ${folder}_test)
  graft_program(${name} FOLDER tests SOURCES ${sources} LINK ${arg_LINK} GTest::gmock
                GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${graft_test_options})
  graft_precompile_tests(${name})
  graft_see_sources(${name})
  gtest_discover_tests(${name}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120
    TEST_PREFIX ${folder}.
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    PROPERTIES LABELS ${folder} TIMEOUT 600)
endfunction()

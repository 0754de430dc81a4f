# Finds the third-party libraries; link them PRIVATE. scripts/setup installs all of them.

include(GraftBundle)

set(graft_default_prefix "${PROJECT_SOURCE_DIR}/third_party")
if(DEFINED ENV{GRAFT_PREFIX})
  set(graft_default_prefix "$ENV{GRAFT_PREFIX}")
endif()
set(GRAFT_PREFIX "${graft_default_prefix}" CACHE PATH "Where scripts/setup put onnx and oneDNN")
list(PREPEND CMAKE_PREFIX_PATH "${GRAFT_PREFIX}/onnx" "${GRAFT_PREFIX}/onednn"
     "${GRAFT_PREFIX}/python")

# graft_fetch(NAME repository commit): NAME is found on the system or, failing that, downloaded. A tag
# may be moved to other content, a commit may not.
function(graft_fetch name repository commit)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # so that the switches below reach older projects
  set(BUILD_TESTING OFF)
  set(EIGEN_BUILD_DOC OFF)
  set(INSTALL_GTEST OFF)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${commit} SYSTEM
                       FIND_PACKAGE_ARGS)
  FetchContent_MakeAvailable(${name})
endfunction()

if(GRAFT_FETCH_DEPENDENCIES)
  include(FetchContent)
  graft_fetch(Eigen3 https://gitlab.com/libeigen/eigen.git
              3147391d946bb4b6c68edd901f2add6ac1f31f8c)  # 3.4.0
  graft_fetch(nlohmann_json https://github.com/nlohmann/json.git
              9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03)  # 3.11.3
  if(GRAFT_BUILD_TOOLS)
    graft_fetch(CLI11 https://github.com/CLIUtils/CLI11.git
                6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9)  # 2.4.2
  endif()
  if(GRAFT_BUILD_TESTS)
    graft_fetch(GTest https://github.com/google/googletest.git
              f8d7d77c06936315286eb55f8de22cd23c188571)  # 1.14.0
  endif()
else()
  find_package(Eigen3 3.3 REQUIRED NO_MODULE)
  find_package(nlohmann_json REQUIRED)
  if(GRAFT_BUILD_TOOLS)
    find_package(CLI11 REQUIRED)
  endif()
  if(GRAFT_BUILD_TESTS)
    find_package(GTest REQUIRED)
  endif()
endif()

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
graft_prefer_archive(z ZLIB::ZLIB)
find_package(benchmark QUIET)

if(NOT GRAFT_MODELS)
  # libonnx's package expects Protobuf's targets to be there already.
  find_package(Protobuf CONFIG QUIET)
  if(NOT Protobuf_FOUND)
    find_package(Protobuf 3.21 MODULE REQUIRED)
  endif()
  find_package(ONNX CONFIG QUIET)
  if(NOT ONNX_FOUND)
    message(FATAL_ERROR "libonnx not found in ${GRAFT_PREFIX}/onnx: run scripts/setup, "
                        "or set GRAFT_PREFIX or CMAKE_PREFIX_PATH")
  endif()
  graft_prefer_archive(protobuf protobuf::libprotobuf)
  set_target_properties(ONNX::onnx ONNX::onnx_proto PROPERTIES
                        INTERFACE_LINK_LIBRARIES graft_protobuf)
endif()

include(GraftOnednn)

# GRAFT_RE2 is what to link for RE2, or nothing.
set(GRAFT_RE2 "")
if(GRAFT_WITH_RE2)
  find_package(RE2 QUIET)
  if(RE2_FOUND)
    graft_prefer_archive(re2 re2::re2)
    set(GRAFT_RE2 graft_re2)
  elseif(NOT GRAFT_WITH_RE2 STREQUAL "AUTO")
    message(FATAL_ERROR "GRAFT_WITH_RE2 is ON, but RE2 was not found: run scripts/setup")
  endif()
endif()

if(GRAFT_MODELS)
  message(STATUS "for these models alone: ${GRAFT_MODELS}; without libonnx, protobuf and oneDNN")
else()
  message(STATUS "onnx ${ONNX_VERSION}, protobuf ${Protobuf_VERSION}, oneDNN ${graft_onednn_version}")
endif()
if(NOT GRAFT_RE2)
  message(STATUS "without RE2: no RegexFullMatch, and no patterns of parameters' names")
endif()

# Finds the third-party libraries; link them PRIVATE. scripts/setup installs all of them.

set(graft_default_prefix "${PROJECT_SOURCE_DIR}/third_party")
if(DEFINED ENV{GRAFT_PREFIX})
  set(graft_default_prefix "$ENV{GRAFT_PREFIX}")
endif()
set(GRAFT_PREFIX "${graft_default_prefix}" CACHE PATH "Where scripts/setup put onnx and oneDNN")
list(PREPEND CMAKE_PREFIX_PATH "${GRAFT_PREFIX}/onnx" "${GRAFT_PREFIX}/python")

# graft_fetch(NAME repository tag): NAME is found on the system or, failing that, downloaded.
function(graft_fetch name repository tag)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # so that the switches below reach older projects
  set(BUILD_TESTING OFF)
  set(EIGEN_BUILD_DOC OFF)
  set(INSTALL_GTEST OFF)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON SYSTEM
                       FIND_PACKAGE_ARGS)
  FetchContent_MakeAvailable(${name})
endfunction()

if(GRAFT_FETCH_DEPENDENCIES)
  include(FetchContent)
  graft_fetch(Eigen3 https://gitlab.com/libeigen/eigen.git 3.4.0)
  graft_fetch(nlohmann_json https://github.com/nlohmann/json.git v3.11.3)
  if(GRAFT_BUILD_TOOLS)
    graft_fetch(CLI11 https://github.com/CLIUtils/CLI11.git v2.4.2)
  endif()
  if(GRAFT_BUILD_TESTS)
    graft_fetch(GTest https://github.com/google/googletest.git v1.14.0)
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
find_package(benchmark QUIET)

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

include(GraftOnednn)

# GRAFT_RE2 is what to link for RE2, or nothing.
set(GRAFT_RE2 "")
if(GRAFT_WITH_RE2)
  find_package(RE2 QUIET)
  if(RE2_FOUND)
    set(GRAFT_RE2 re2::re2)
  elseif(NOT GRAFT_WITH_RE2 STREQUAL "AUTO")
    message(FATAL_ERROR "GRAFT_WITH_RE2 is ON, but RE2 was not found: run scripts/setup")
  endif()
endif()

include(GraftBundle)
graft_link_statically(protobuf::libprotobuf libprotobuf.a)
graft_link_statically(ZLIB::ZLIB libz.a)
graft_link_statically(re2::re2 libre2.a)

message(STATUS "onnx ${ONNX_VERSION}, protobuf ${Protobuf_VERSION}, oneDNN ${graft_onednn_version}")
if(NOT GRAFT_RE2)
  message(STATUS "without RE2: no RegexFullMatch, and no patterns of parameters' names")
endif()

# GRAFT_CUDA: OFF; ON, nvcc and the CUDA runtime; EMULATED, the same kernel texts by the C++ compiler
# and the runtime of core/device/cuda/emulated, which runs them on the CPU. CMake chooses files, and
# no source asks which it is.

if(NOT GRAFT_CUDA MATCHES "^(OFF|ON|EMULATED)$")
  message(FATAL_ERROR "GRAFT_CUDA is '${GRAFT_CUDA}', wanted OFF, ON or EMULATED")
endif()

if(GRAFT_CUDA STREQUAL "ON")
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(CMAKE_CUDA_COMPILER nvcc HINTS ENV CUDA_PATH /usr/local/cuda
                 "${GRAFT_PREFIX}/cuda/nvidia/cu13" PATH_SUFFIXES bin)
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "GRAFT_CUDA is ON, but nvcc was not found: call scripts/setup --cuda, "
                        "install the CUDA toolkit 13, or set CMAKE_CUDA_COMPILER")
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;90;120" CACHE STRING "Cards to compile for")
  endif()
  enable_language(CUDA)
  find_package(CUDAToolkit 13 REQUIRED)
  if(GRAFT_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER "${GRAFT_CCACHE}")
  endif()
elseif(GRAFT_CUDA STREQUAL "EMULATED")
  # Of the toolkit only the headers are used.
  find_path(GRAFT_CUDA_HEADERS cuda_runtime_api.h HINTS ENV CUDA_PATH /usr/local/cuda
            "${GRAFT_PREFIX}/cuda/nvidia/cu13" PATH_SUFFIXES include)
  if(NOT GRAFT_CUDA_HEADERS)
    message(FATAL_ERROR "GRAFT_CUDA is EMULATED, but cuda_runtime_api.h was not found: call "
                        "scripts/setup --cuda, install the CUDA toolkit 13, or set "
                        "GRAFT_CUDA_HEADERS")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    message(FATAL_ERROR "GRAFT_CUDA is EMULATED, but threads switch stacks in x86-64 code only")
  endif()
endif()

# cuBLASLt and cuDNN: headers to compile with; the libraries are loaded when a card is used, and what
# they are not there for, our own kernels do.
if(NOT GRAFT_CUDA STREQUAL "OFF")
  foreach(header IN ITEMS cublasLt.h cudnn.h)
    find_path(GRAFT_${header} ${header} HINTS ENV CUDA_PATH /usr/local/cuda
              "${GRAFT_PREFIX}/cuda/nvidia/cu13" "${GRAFT_PREFIX}/cuda/nvidia/cudnn"
              PATH_SUFFIXES include)
    if(NOT GRAFT_${header})
      message(FATAL_ERROR "GRAFT_CUDA is ${GRAFT_CUDA}, but ${header} was not found: call "
                          "scripts/setup --cuda, or set GRAFT_${header} to its folder")
    endif()
  endforeach()
endif()

# graft_cuda_sources(<variable> [folder...]): adds and removes what graft_sources leaves to us.
function(graft_cuda_sources variable)
  set(sources "${${variable}}")
  if(GRAFT_CUDA STREQUAL "OFF")
    set(kept ${sources})
    list(FILTER kept INCLUDE REGEX "/no_cuda\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_(cuda|cudnn)\\.cpp$")
    list(APPEND sources ${kept})
  else()
    list(FILTER sources EXCLUDE REGEX "/no_cuda\\.cpp$")
    set(patterns "${CMAKE_CURRENT_SOURCE_DIR}/*.cu")
    foreach(folder IN LISTS ARGN)
      list(APPEND patterns "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cu")
    endforeach()
    file(GLOB kernels CONFIGURE_DEPENDS ${patterns})
    list(APPEND sources ${kernels})
    if(GRAFT_CUDA STREQUAL "EMULATED")
      set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX)
    endif()
  endif()
  set(${variable} "${sources}" PARENT_SCOPE)
endfunction()

# graft_use_cuda(<target>): what its kernel texts and the files that start them need. A kernel that
# spills registers, or keeps arrays in local memory, stops the build.
function(graft_use_cuda target)
  if(GRAFT_CUDA STREQUAL "OFF")
    return()
  endif()
  set(simt "${PROJECT_SOURCE_DIR}/core/device/cuda/simt")
  target_include_directories(${target} SYSTEM PRIVATE "${GRAFT_cublasLt.h}" "${GRAFT_cudnn.h}")
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  if(GRAFT_CUDA STREQUAL "ON")
    target_include_directories(${target} PRIVATE "${simt}/nvcc")
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
    set_target_properties(${target} PROPERTIES CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
      "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xptxas --warn-on-spills,--warn-on-local-memory-usage -Werror all-warnings>")
  else()
    target_include_directories(${target} PRIVATE "${simt}/emulated")
    target_include_directories(${target} SYSTEM PRIVATE "${GRAFT_CUDA_HEADERS}")
  endif()
endfunction()

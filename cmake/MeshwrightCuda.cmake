# The GPU part, where the CUDA toolkit is found. Sets MESHWRIGHT_HAS_CUDA, and MESHWRIGHT_CUDA_STATE
# to one line that says what is on or why nothing is. Included at the top, since it enables a
# language.
option(MESHWRIGHT_CUDA "Build the GPU plug-in where the CUDA toolkit is found" ON)
set(MESHWRIGHT_CUDA_ARCHITECTURES "90a-real" CACHE STRING
    "GPUs to compile for: Hopper alone, which is quick; preset cuda has all others too")

set(MESHWRIGHT_HAS_CUDA FALSE)
if(NOT MESHWRIGHT_CUDA)
  set(MESHWRIGHT_CUDA_STATE "off: MESHWRIGHT_CUDA is OFF")
elseif(MESHWRIGHT_SANITIZE OR MESHWRIGHT_FUZZ)
  # Sanitized programs would need a sanitized plug-in, whose device code gains nothing by it.
  set(MESHWRIGHT_CUDA_STATE "off: not with sanitizers")
else()
  find_program(MESHWRIGHT_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
               PATH_SUFFIXES bin)
  if(NOT MESHWRIGHT_NVCC)
    set(MESHWRIGHT_CUDA_STATE "off: nvcc not found (nor in /usr/local/cuda/bin)")
  else()
    set(CMAKE_CUDA_COMPILER "${MESHWRIGHT_NVCC}")
    set(CMAKE_CUDA_ARCHITECTURES "${MESHWRIGHT_CUDA_ARCHITECTURES}")
    # The host compiler of the rest, or nvcc would take any g++ of the path.
    set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}")
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25 does not know of CUDA 13's C++20
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
      endif()
      find_package(CUDAToolkit 13)
    endif()
    if(NOT TARGET CUDA::cublasLt)
      set(MESHWRIGHT_CUDA_STATE "off: ${MESHWRIGHT_NVCC} does not work, or has no cuBLASLt of 13 or newer")
    else()
      set(MESHWRIGHT_HAS_CUDA TRUE)
      set(MESHWRIGHT_CUDA_STATE
          "on: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for ${MESHWRIGHT_CUDA_ARCHITECTURES}")
    endif()
  endif()
endif()

# meshwright_cuda_part(SOURCES ...): adds sources to the plug-in libmeshwright_cuda.so, which lies
# beside the programs and is opened at run time. It is never linked, and links no driver.
function(meshwright_cuda_part)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  if(NOT TARGET meshwright_cuda)
    add_library(meshwright_cuda MODULE)
    set_target_properties(meshwright_cuda PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}"
      CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN OFF
      CUDA_RUNTIME_LIBRARY Static
      # Beside the toolkit it was built with, where others install it.
      BUILD_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR};/usr/local/cuda/lib64")
    target_include_directories(meshwright_cuda PRIVATE "${CMAKE_SOURCE_DIR}")
    target_compile_definitions(meshwright_cuda PRIVATE FMT_HEADER_ONLY=1)
    target_compile_options(meshwright_cuda PRIVATE
      # -Wall and the rest are for the host's compiler: they find fault with what nvcc generates.
      $<$<COMPILE_LANGUAGE:CUDA>:-O3 --expt-relaxed-constexpr -lineinfo>
      $<$<COMPILE_LANGUAGE:CXX>:-O2 -Wall -Wextra -Wno-pedantic>)
    target_link_libraries(meshwright_cuda PRIVATE CUDA::cublasLt CUDA::cudart_static)
  endif()
  foreach(source IN LISTS ARG_SOURCES)
    target_sources(meshwright_cuda PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
  endforeach()
endfunction()

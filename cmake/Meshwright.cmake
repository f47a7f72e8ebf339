# Build settings shared by all folders.
option(MESHWRIGHT_TESTS "Build the tests" ON)
option(MESHWRIGHT_BENCH "Build the benchmarks" OFF)
option(MESHWRIGHT_FUZZ "Build the libFuzzer targets (clang)" OFF)
option(MESHWRIGHT_WERROR "Warnings are errors" ON)
set(MESHWRIGHT_SANITIZE "" CACHE STRING "Sanitizers, such as address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers need these, or ccache never hits.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${CCACHE_PROGRAM})
endif()

add_library(meshwright_settings INTERFACE)
target_include_directories(meshwright_settings INTERFACE "${CMAKE_SOURCE_DIR}")
target_compile_options(meshwright_settings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                       $<$<BOOL:${MESHWRIGHT_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # Inlined std::string operations look like overlapping or overflowing copies to GCC 12 (GCC bugs
  # 105329 and 105651).
  target_compile_options(meshwright_settings INTERFACE -Wno-restrict -Wno-array-bounds
                                                       -Wno-stringop-overflow)
endif()
if(CCACHE_PROGRAM AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(meshwright_settings INTERFACE -fpch-preprocess)
endif()
if(MESHWRIGHT_SANITIZE)
  target_compile_options(meshwright_settings INTERFACE -fsanitize=${MESHWRIGHT_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(meshwright_settings INTERFACE -fsanitize=${MESHWRIGHT_SANITIZE})
endif()

if(MESHWRIGHT_FUZZ) # coverage of all code; callbacks come from the sanitizer's runtime
  target_compile_options(meshwright_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# meshwright_library(name SOURCES ... [PUBLIC targets...] [PRIVATE targets...])
function(meshwright_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC meshwright_settings ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# meshwright_test(name LABELS labels... SOURCES ... LINK targets...): one GoogleTest program; each
# of its tests is a ctest.
function(meshwright_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE meshwright_settings GTest::gtest GTest::gmock
                        GTest::gtest_main ${ARG_LINK})
  target_compile_definitions(${name} PRIVATE
                             MESHWRIGHT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  # Test code is compiled more often than it runs.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST
                       PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300)
endfunction()

# meshwright_print_optional(part folder found what): whether a part is built, and why not.
function(meshwright_print_optional part folder found what)
  if(NOT found)
    set(state "off: ${what} not found")
  elseif(EXISTS "${CMAKE_SOURCE_DIR}/${folder}/CMakeLists.txt")
    set(state "on: ${what} found")
  else()
    set(state "off: ${what} found, but this version has no part that uses it")
  endif()
  message(STATUS "  ${part}: ${state}")
endfunction()

function(meshwright_print_summary)
  message(STATUS "Meshwright ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, "
                 "tests ${MESHWRIGHT_TESTS}, bench ${MESHWRIGHT_BENCH}, "
                 "sanitizers '${MESHWRIGHT_SANITIZE}', ccache '${CCACHE_PROGRAM}'")
  find_package(Qt6 QUIET COMPONENTS Widgets)
  find_package(MPI QUIET COMPONENTS CXX)
  meshwright_print_optional("gui" gui "${Qt6_FOUND}" "Qt 6 Widgets")
  meshwright_print_optional("several processes" executor "${MPI_CXX_FOUND}" "MPI")
  message(STATUS "  GPUs: ${MESHWRIGHT_CUDA_STATE}")
endfunction()

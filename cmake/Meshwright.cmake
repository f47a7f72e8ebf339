# Build settings shared by all folders.
option(MESHWRIGHT_TESTS "Build the tests" ON)
option(MESHWRIGHT_BENCH "Build the benchmarks" OFF)
option(MESHWRIGHT_PYTHON "Build the extension module of the Python package (see ./dev wheel)" OFF)
option(MESHWRIGHT_FUZZ "Build the libFuzzer targets (clang)" OFF)
# With GCC 12, as in CI: new warnings of another compiler must not stop a user's build.
set(warnings_are_errors OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(warnings_are_errors ON)
endif()
option(MESHWRIGHT_WERROR "Treat warnings as errors" ${warnings_are_errors})
set(MESHWRIGHT_REQUIRED_PARTS "" CACHE STRING
    "Optional parts that must be built: gui, mpi, simgrid (SimGrid comparison in the tests)")
set(MESHWRIGHT_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined or thread")

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
  # Without these, precompiled headers prevent ccache hits.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_DEPEND=1 # a miss costs one compilation, not a preprocessor run as well
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
  # The check of virtual tables opens a pipe, and has findings where no descriptor is left.
  target_compile_options(meshwright_settings INTERFACE -fsanitize=${MESHWRIGHT_SANITIZE}
                         -fno-sanitize=vptr -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(meshwright_settings INTERFACE -fsanitize=${MESHWRIGHT_SANITIZE})
endif()

# Release programs are hardened; SECURITY.md says with what, tests/packaging checks it.
set(is_hardened $<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>)
target_compile_options(
  meshwright_settings
  INTERFACE "$<${is_hardened}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=3;-fstack-protector-strong>")
target_link_options(meshwright_settings INTERFACE $<$<CONFIG:Release>:LINKER:-z,relro,-z,now>)

if(MESHWRIGHT_FUZZ) # coverage instrumentation; callbacks are in the sanitizer runtime
  target_compile_options(meshwright_settings INTERFACE -fsanitize=fuzzer-no-link)
endif()

# meshwright_precompiled_headers(name LINK targets... HEADERS ... [OPTIONS ...]): headers that are parsed
# once. Targets with the same compile options share them: target_precompile_headers(... REUSE_FROM name).
function(meshwright_precompiled_headers name)
  cmake_parse_arguments(ARG "" "" "LINK;HEADERS;OPTIONS" ${ARGN})
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// only a precompiled header\n")
  add_library(${name} OBJECT "${source}")
  target_link_libraries(${name} PRIVATE meshwright_settings ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# meshwright_library(name SOURCES ... [PUBLIC targets...] [PRIVATE targets...])
function(meshwright_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC meshwright_settings ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
endfunction()

# -O1, since test code is compiled more often than it runs; -fPIC, which Qt asks for, so that all test
# programs can share one precompiled header.
set(MESHWRIGHT_TEST_OPTIONS $<$<CONFIG:Release>:-O1> -fPIC)

# Seconds after which a test counts as hung. Sanitizers make searches some ten times slower.
set(MESHWRIGHT_TEST_TIMEOUT 300)
if(MESHWRIGHT_SANITIZE)
  set(MESHWRIGHT_TEST_TIMEOUT 1800)
endif()

# meshwright_test(name LABELS labels... SOURCES ... LINK targets...): a GoogleTest program; each of
# its tests is a separate ctest, except under sanitizers, where eight ctests share them.
function(meshwright_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF) # file-local fixtures share names
  target_link_libraries(${name} PRIVATE meshwright_settings GTest::gtest GTest::gmock
                        GTest::gtest_main ${ARG_LINK})
  target_compile_definitions(${name} PRIVATE
                             MESHWRIGHT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE ${MESHWRIGHT_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM meshwright_test_headers)
  # Under sanitizers, tests share processes: starting one for each of some 4,000 tests is slow.
  if(MESHWRIGHT_SANITIZE)
    foreach(shard RANGE 7)
      add_test(NAME ${name}_${shard} COMMAND ${name} --gtest_brief=1)
      set_tests_properties(${name}_${shard} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${MESHWRIGHT_TEST_TIMEOUT}
                           ENVIRONMENT "GTEST_TOTAL_SHARDS=8;GTEST_SHARD_INDEX=${shard}")
    endforeach()
    return()
  endif()
  # Listing tests starts the program: on a busy machine with cold disks that takes more than the
  # 5 seconds of the default.
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                       PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${MESHWRIGHT_TEST_TIMEOUT})
endfunction()

# meshwright_check_part(part found): stops if this optional part is required and was not found.
function(meshwright_check_part part found)
  if(part IN_LIST MESHWRIGHT_REQUIRED_PARTS AND NOT found)
    message(FATAL_ERROR "MESHWRIGHT_REQUIRED_PARTS contains '${part}', but what it needs was not found")
  endif()
endfunction()

# meshwright_print_optional(part folder found what): prints whether a part is built, and why not.
function(meshwright_print_optional part folder found what)
  if(NOT found)
    set(state "off: ${what} not found")
  elseif(EXISTS "${CMAKE_SOURCE_DIR}/${folder}/CMakeLists.txt")
    set(state "on: ${what} found")
  else()
    set(state "off: ${what} found, but ${folder}/ does not exist")
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
  meshwright_print_optional("multi-process runs" executor "${MPI_CXX_FOUND}" "MPI")
  foreach(plugin IN LISTS MESHWRIGHT_PLUGINS)
    string(TOUPPER ${plugin} plugin)
    message(STATUS "  GPU plug-in: ${MESHWRIGHT_${plugin}_STATE}")
  endforeach()
endfunction()

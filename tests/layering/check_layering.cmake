# Checks every #include against the layers: who may use whom, and which libraries.
#
#   cmake -DROOT=<tree> -P check_layering.cmake
#
# Prints one line per violation and fails if there is any. Headers of libraries are known by their
# first path component; a standard header has neither '/' nor '.' in its name.
cmake_minimum_required(VERSION 3.25)

set(folders core models simulator planner kernels executor gui cli)

# folder → project folders it may include beside itself
set(uses_core)
set(uses_models core)
set(uses_simulator core)
set(uses_planner core simulator)
set(uses_kernels core)
set(uses_executor core kernels)
set(uses_gui core models planner simulator)
set(uses_cli core models planner simulator kernels executor)

# folder → libraries its sources (.cpp) may include, by the first component of the path
set(libraries_core fmt nlohmann protozero boost)
set(libraries_models fmt nlohmann toml++)
set(libraries_simulator fmt Eigen)
set(libraries_planner fmt boost)
set(libraries_kernels fmt Eigen)
set(libraries_executor fmt)
set(libraries_gui fmt)
set(libraries_cli fmt nlohmann CLI sys)

# folder → standard and system headers that would break a promise: no threads in core, no clocks
# and no randomness where results must be the same every time.
set(clocks_and_chance chrono ctime time.h random)
set(threads thread mutex shared_mutex future condition_variable atomic stop_token)
set(files fstream filesystem cstdio stdio.h fcntl.h unistd.h)
set(never_core ${clocks_and_chance} ${threads} ${files} iostream)
set(never_models ${clocks_and_chance} ${threads} iostream)
set(never_simulator ${clocks_and_chance} ${threads} ${files} iostream)
set(never_planner ${clocks_and_chance} ${files} iostream)
# Exceptions, by file: core's io_* read and write files, and rename needs a unique temporary name.
set(never_core_io ${clocks_and_chance} ${threads} iostream)

set(violation_count 0)
macro(report)
  math(EXPR violation_count "${violation_count} + 1")
  message("${path}: ${ARGN}")
endmacro()

# A system include of a header is judged by its spelling alone.
function(is_library_header name result)
  if(name MATCHES "[/.]" AND NOT name MATCHES "^(sys/|[a-z_]+\\.h$)")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

foreach(folder IN LISTS folders)
  file(GLOB_RECURSE paths RELATIVE "${ROOT}" "${ROOT}/${folder}/*.hpp" "${ROOT}/${folder}/*.cpp"
       "${ROOT}/${folder}/*.cu" "${ROOT}/${folder}/*.h")
  foreach(path IN LISTS paths)
    set(never "${never_${folder}}")
    if(path MATCHES "^core/io_")
      set(never "${never_core_io}")
    endif()
    file(STRINGS "${ROOT}/${path}" includes REGEX "^[ \t]*#[ \t]*include[ \t]")
    foreach(include IN LISTS includes)
      if(include MATCHES "\"([^\"]*)\"")
        set(name "${CMAKE_MATCH_1}")
        string(REGEX REPLACE "/.*" "" first "${name}")
        if(NOT name MATCHES "/")
          report("includes \"${name}\"; write the path from the root")
        elseif(NOT EXISTS "${ROOT}/${name}")
          report("includes \"${name}\", which does not exist")
        elseif(NOT first STREQUAL folder AND NOT first IN_LIST uses_${folder})
          report("${folder} must not use ${first} (\"${name}\")")
        endif()
      elseif(include MATCHES "<([^>]*)>")
        set(name "${CMAKE_MATCH_1}")
        string(REGEX REPLACE "[/.].*" "" first "${name}")
        is_library_header("${name}" from_library)
        if(name IN_LIST never)
          report("${folder} must not use <${name}>")
        elseif(from_library AND path MATCHES "\\.hpp$" AND NOT folder STREQUAL "gui")
          report("public header includes a library: <${name}>")
        elseif(from_library AND NOT first IN_LIST libraries_${folder} AND NOT folder STREQUAL "gui")
          report("${folder} must not use the library of <${name}>")
        endif()
      endif()
    endforeach()
  endforeach()
endforeach()

if(violation_count GREATER 0)
  message(FATAL_ERROR "${violation_count} layering violations")
endif()
message("layering is sound")

# Checks every #include against the layers: who may use whom, and which libraries. Checks that no
# two headers define a type of the same name.
#
#   cmake -DROOT=<tree> -P check_layering.cmake
#
# Prints one line per violation and fails if there is any. Headers of libraries are known by their
# first path component; a standard header has neither '/' nor '.' in its name.
cmake_minimum_required(VERSION 3.25)

set(folders core models simulator planner kernels executor gui cli python)

# folder → project folders it may include beside itself
set(uses_core)
set(uses_models core)
set(uses_simulator core)
set(uses_planner core simulator)
set(uses_kernels core)
set(uses_executor core kernels)
set(uses_gui core models planner simulator)
set(uses_python core cli)
set(uses_cli core models planner simulator kernels executor)

# folder → libraries its sources (.cpp) may include, by the first component of the path
set(libraries_core fmt nlohmann protozero boost)
set(libraries_models fmt nlohmann toml++ protozero)
set(libraries_simulator fmt Eigen ceres)
set(libraries_planner fmt boost)
set(libraries_kernels fmt Eigen oneapi cublasLt cute cutlass nvtx3)
set(libraries_executor fmt openssl)
set(libraries_gui fmt)
set(libraries_cli fmt nlohmann CLI sys)
set(libraries_python nanobind)

# folder → standard and system headers that would break a promise: no threads in core, no clocks
# and no randomness where results must be the same every time.
set(clocks_and_chance chrono ctime time.h random)
set(threads thread mutex shared_mutex future condition_variable atomic stop_token)
set(files fstream filesystem cstdio stdio.h fcntl.h unistd.h)
set(never_core ${clocks_and_chance} ${threads} ${files} iostream)
set(never_models ${clocks_and_chance} ${threads} iostream)
set(never_simulator ${clocks_and_chance} ${threads} ${files} iostream)
set(never_planner ${clocks_and_chance} ${files} iostream)
# Exception: core/formats reads and writes files, and rename needs a unique temporary name.
set(never_core_formats ${clocks_and_chance} ${threads} iostream)

# Rooms of a folder, floor by floor: a file may include its own room and those on lower floors.
set(floors_core "base" "cluster model schedule" "plan" "trainer" "operators" "graph"
                "checks cost lowering timeline" "formats")
set(floors_simulator "network" "engine" "evaluate variation" "cost" "fit" "predict")
set(floors_kernels "device reference" "cpu cuda")
set(floors_planner "parallel synthesis sharding" "partition" "search" "sizing")
set(floors_models "text builders" "families graphs onnx" "load" "launch" "import" "kineto")
set(floors_cli "terminal" "flags reports" "validation" "job partition" "explain manual plan run schedule sweep" "calibration"
               "commands" "program")
set(floors_gui "timeline" "text" "session timeline_view" "widgets" "screens" "window")
set(floors_executor "transport" "launch" "ranks tasks" "parameters" "operators" "training"
                    "checkpoint" "runs" "calibration")

# gui/timeline is written and tested without widgets: what paints into images may include QtGui, the
# rest no Qt at all.
set(without_qt "^gui/timeline/")
set(without_widgets "^gui/timeline/(label_font|painter|painter_vectors|[a-z_]*lane_painter)[.]")
set(widget_headers "^Q(Widget|Application|Abstract|Action|Menu|Scroll|Main|Dock|Dialog|ToolTip)")

set(violation_count 0)
macro(report)
  math(EXPR violation_count "${violation_count} + 1")
  message("${path}: ${ARGN}")
endmacro()

# A system include of a header is judged by its spelling alone.
function(is_library_header name result)
  if(name MATCHES "[/.]" AND NOT name MATCHES "^((sys|netinet)/|[a-z_]+\\.h$)")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Headers that bring a library along, by themselves or by what they include, are for their own
# folder alone: a folder's public headers have no third-party types.
set(headers_with_library)
file(GLOB_RECURSE headers RELATIVE "${ROOT}" "${ROOT}/*/*.hpp")
set(grew TRUE)
while(grew)
  set(grew FALSE)
  foreach(header IN LISTS headers)
    if(header IN_LIST headers_with_library OR NOT header MATCHES "^(core|models|simulator|planner|kernels|executor|cli)/")
      continue()
    endif()
    file(STRINGS "${ROOT}/${header}" includes REGEX "^[ \t]*#[ \t]*include[ \t]")
    foreach(include IN LISTS includes)
      set(from_library FALSE)
      if(include MATCHES "<([^>]*)>")
        is_library_header("${CMAKE_MATCH_1}" from_library)
      elseif(include MATCHES "\"([^\"]*)\"" AND CMAKE_MATCH_1 IN_LIST headers_with_library)
        set(from_library TRUE)
      endif()
      if(from_library)
        list(APPEND headers_with_library "${header}")
        set(grew TRUE)
        break()
      endif()
    endforeach()
  endforeach()
endwhile()

# The room of core/plan/plan.hpp is plan, and its floor counts from 1; no floor: not in a room.
function(find_floor path room_result floor_result)
  set(${floor_result} "" PARENT_SCOPE)
  if(NOT path MATCHES "^([a-z]+)/([a-z_]+)/")
    return()
  endif()
  set(room "${CMAKE_MATCH_2}")
  set(number 0)
  foreach(floor IN LISTS floors_${CMAKE_MATCH_1})
    math(EXPR number "${number} + 1")
    string(REPLACE " " ";" rooms "${floor}")
    if(room IN_LIST rooms)
      set(${room_result} "${room}" PARENT_SCOPE)
      set(${floor_result} "${number}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

foreach(folder IN LISTS folders)
  file(GLOB_RECURSE paths RELATIVE "${ROOT}" "${ROOT}/${folder}/*.hpp" "${ROOT}/${folder}/*.cpp"
       "${ROOT}/${folder}/*.cu" "${ROOT}/${folder}/*.h")
  foreach(path IN LISTS paths)
    set(never "${never_${folder}}")
    if(path MATCHES "^core/formats/")
      set(never "${never_core_formats}")
    endif()
    find_floor("${path}" room floor)
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
        elseif(NOT first STREQUAL folder AND name IN_LIST headers_with_library)
          report("${name} brings a library along: it is for ${first} alone")
        elseif(first STREQUAL folder AND floor)
          find_floor("${name}" used_room used_floor)
          if(used_floor AND NOT used_room STREQUAL room AND NOT used_floor LESS floor)
            report("${room} must not use ${used_room} (\"${name}\")")
          endif()
        endif()
      elseif(include MATCHES "<([^>]*)>")
        set(name "${CMAKE_MATCH_1}")
        string(REGEX REPLACE "[/.].*" "" first "${name}")
        is_library_header("${name}" from_library)
        if(path MATCHES "${without_widgets}" AND name MATCHES "${widget_headers}")
          report("this part of the timeline is without widgets: <${name}>")
        elseif(path MATCHES "${without_qt}" AND NOT path MATCHES "${without_widgets}" AND name MATCHES "^Q")
          report("this part of the timeline is without Qt: <${name}>")
        elseif(name IN_LIST never)
          report("${folder} must not use <${name}>")
        elseif(from_library AND NOT first IN_LIST libraries_${folder} AND NOT folder STREQUAL "gui")
          report("${folder} must not use the library of <${name}>")
        endif()
      endif()
    endforeach()
  endforeach()
endforeach()

# A type is defined in one header only: two types with one name in one namespace violate the
# one-definition rule, and neither compiler nor linker reports it. Definitions start in column 0;
# an unnamed namespace belongs to its file.
foreach(path IN LISTS headers)
  if(NOT path MATCHES "^(core|models|simulator|planner|kernels|executor|gui|cli)/")
    continue()
  endif()
  set(scopes)
  file(STRINGS "${ROOT}/${path}" lines
       REGEX "^(namespace |}  // namespace|struct |class |enum class |union )")
  foreach(line IN LISTS lines)
    if(line MATCHES "^}")
      list(POP_BACK scopes)
    elseif(line MATCHES "^namespace (meshwright[A-Za-z0-9_:]*)")
      set(scopes "${CMAKE_MATCH_1}")  # the outermost
    elseif(line MATCHES "^namespace {")
      list(APPEND scopes "${path}")
    elseif(line MATCHES "^namespace ([A-Za-z0-9_:]+)")
      list(APPEND scopes "${CMAKE_MATCH_1}")
    elseif(line MATCHES "^(struct|class|enum class|union) ([A-Z][A-Za-z0-9]*)( final)?( :[^:].*| {.*)?$")
      string(REPLACE ";" "::" type "${scopes};${CMAKE_MATCH_2}")
      string(MAKE_C_IDENTIFIER "${type}" key)
      if(DEFINED defined_in_${key})
        report("defines ${type}, as ${defined_in_${key}} does")
      endif()
      set(defined_in_${key} "${path}")
    endif()
  endforeach()
endforeach()

if(violation_count GREATER 0)
  message(FATAL_ERROR "${violation_count} layering violations")
endif()
message("layering is sound")

# Writes the man page of the desktop program from its --help:
#
#   cmake -D PROGRAM=<meshwright-gui> -D OUTPUT=<file.1.gz> -D DATE=<YYYY-MM-DD> -D VERSION=<x.y.z>
#         -P write_gui_man_page.cmake
#
# QCommandLineParser prints "Usage: …", a description, and sections ("Options:") of rows that begin
# with two spaces: a term, two spaces or more, and text that goes on in lines indented further.
cmake_minimum_required(VERSION 3.25)

execute_process(COMMAND "${CMAKE_COMMAND}" -E env QT_QPA_PLATFORM=offscreen LC_ALL=C.UTF-8
                        QT_LOGGING_RULES=*.warning=false "${PROGRAM}" --help
                OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)

# Semicolons and brackets would change how CMake splits the text into a list of lines.
string(REPLACE ";" "<semicolon>" help "${help}")
string(REPLACE "[" "<open>" help "${help}")
string(REPLACE "]" "<close>" help "${help}")
string(REPLACE "\\" "\\e" help "${help}")
string(REPLACE "-" "\\-" help "${help}")
string(REPLACE "'" "\\(aq" help "${help}")
string(REPLACE "…" "..." help "${help}")
string(REGEX REPLACE "\n+" ";" lines "${help}")

set(title "DESCRIPTION")
set(summary "")
set(body "")
function(append_text text) # a line that begins with a dot would be a request of roff
  string(REGEX REPLACE "^\\." "\\\\&." text "${text}")
  set(body "${body}${text}\n" PARENT_SCOPE)
endfunction()
foreach(line IN LISTS lines)
  if(line MATCHES "^Usage: [^ ]*(.*)")
    set(synopsis "${CMAKE_MATCH_1}")
  elseif(line MATCHES "^([A-Z][a-z]+):$")
    string(TOUPPER "${CMAKE_MATCH_1}" title)
    string(APPEND body ".SH ${title}\n")
  elseif(line MATCHES "^  ([^ ]+( [^ ]+)*)   *([^ ].*)$")
    string(APPEND body ".TP\n\\fB${CMAKE_MATCH_1}\\fR\n")
    append_text("${CMAKE_MATCH_3}")
  elseif(line MATCHES "^  ([^ ].*)$")
    string(APPEND body ".TP\n\\fB${CMAKE_MATCH_1}\\fR\n")
  elseif(line MATCHES "^ +([^ ].*)$")
    append_text("${CMAKE_MATCH_1}")
  elseif(line AND title STREQUAL "DESCRIPTION")
    string(APPEND summary "${line}\n")
  endif()
endforeach()

set(page ".\\\" Generated from \"meshwright\\-gui \\-\\-help\".
.TH \"MESHWRIGHT\\-GUI\" 1 \"${DATE}\" \"Meshwright ${VERSION}\" \"Meshwright manual\"
.SH NAME
meshwright\\-gui \\- desktop program of Meshwright, which plans parallel training
.SH SYNOPSIS
\\fBmeshwright\\-gui\\fR${synopsis}
.SH DESCRIPTION
${summary}${body}.SH SEE ALSO
\\fBmeshwright\\fR(1)
")
string(REPLACE "<semicolon>" ";" page "${page}")
string(REPLACE "<open>" "[" page "${page}")
string(REPLACE "<close>" "]" page "${page}")

string(REGEX REPLACE "\\.gz$" "" uncompressed "${OUTPUT}")
file(WRITE "${uncompressed}" "${page}")
execute_process(COMMAND gzip -9nf "${uncompressed}" COMMAND_ERROR_IS_FATAL ANY)

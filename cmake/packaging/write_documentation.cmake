# Writes man pages and shell completions from the program itself:
#
#   cmake -D PROGRAM=<meshwright> -D OUTPUT=<folder> -D DATE=<YYYY-MM-DD> -P write_documentation.cmake
#
# OUTPUT/man has the compressed pages; OUTPUT/bash/meshwright and OUTPUT/zsh/_meshwright the completions.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${OUTPUT}")
file(MAKE_DIRECTORY "${OUTPUT}/man" "${OUTPUT}/bash" "${OUTPUT}/zsh")
execute_process(COMMAND "${PROGRAM}" man-pages "${OUTPUT}/man" --date "${DATE}"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PROGRAM}" completion bash OUTPUT_FILE "${OUTPUT}/bash/meshwright"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PROGRAM}" completion zsh OUTPUT_FILE "${OUTPUT}/zsh/_meshwright"
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB pages "${OUTPUT}/man/*.1")
execute_process(COMMAND gzip -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)

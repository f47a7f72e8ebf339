#include "cli/program/program.hpp"

int main(int argument_count, char** arguments) {
  return meshwright::run_program(meshwright::kCommands, argument_count, arguments);
}

#include "cli/program/program.hpp"

int main(int argument_count, char** arguments) {
  return meshwright::run_program(meshwright::kPlanningCommands, argument_count, arguments);
}

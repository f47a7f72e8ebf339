#include "cli/program/program.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"

int main(int argument_count, char** arguments) {
  meshwright::reserve_standard_streams();
  meshwright::watch_for_interrupts();
  return meshwright::run_program({arguments + 1, arguments + argument_count});
}

#include <csignal>

#include "cli/program/program.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/standard_streams.hpp"

int main(int argument_count, char** arguments) {
  meshwright::reserve_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond the limit of file sizes fails instead
  std::signal(SIGPIPE, SIG_IGN);  // a progress line that nobody reads does not end a run
  meshwright::watch_for_interrupts();
  return meshwright::run_program({arguments + 1, arguments + argument_count});
}

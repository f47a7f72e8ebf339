#include "cli/commands/commands.hpp"
#include "cli/sweep/sweep_run.hpp"

namespace meshwright {

Command local_sweep_command(CLI::App& app) {
  return make_command(app, add_sweep_command, run_sweep_here);
}

}  // namespace meshwright

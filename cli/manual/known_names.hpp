/// Names that options take and help does not enumerate: models, clusters, schedules, collectives.
#pragma once

#include "cli/manual/command_description.hpp"

namespace meshwright {

/// Adds them to the choices of the options of the program and its commands.
void add_known_names(CommandDescription& program);

}  // namespace meshwright

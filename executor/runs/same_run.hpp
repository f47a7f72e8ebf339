/// Whether all ranks run the same training. Processes of a job are started one by one, perhaps with
/// different options, files or versions of the program.
#pragma once

#include <map>
#include <string>

#include "executor/transport/communicator.hpp"

namespace meshwright {

/// What ranks must agree on: "--seed" -> "1".
using RunSettings = std::map<std::string, std::string>;

/// Called by all ranks before their first step. Throws InputError on ranks whose settings
/// differ from those of rank 0; it names the first that differs.
void check_same_run(Communicator& communicator, const RunSettings& settings);

}  // namespace meshwright

/// Completion scripts for bash and zsh: commands, options, their enumerated values and file names.
#pragma once

#include <string>

#include "cli/manual/command_description.hpp"

namespace meshwright {

/// `program` has one level of commands. The scripts are self-contained: sourced, or installed where
/// the shell looks for them (share/bash-completion/completions/NAME, share/zsh/…/_NAME).
std::string bash_completion(const CommandDescription& program);
std::string zsh_completion(const CommandDescription& program);

}  // namespace meshwright

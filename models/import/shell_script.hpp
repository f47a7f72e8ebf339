/// The commands of a shell script, as far as launch scripts of training programs need them:
/// quotes, line continuations, variables, arrays, defaults (${A:-8}) and integer arithmetic. Both
/// branches of conditions are read in order; nothing is executed. Variables that the script does
/// not set are kept as they are written: "$HOSTNAME".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/text/named_text.hpp"

namespace meshwright {

struct ShellWord {
  std::string text;  ///< without quotes, variables replaced
  int line = 1;
};
struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;
  std::map<std::string, std::vector<std::string>> variables;  ///< last values; arrays have several
};
/// InputError for unterminated quotes and for values that grow without limit.
ShellScript read_shell_script(const NamedText& source);

}  // namespace meshwright

/// What a command returns, and the options that every command has.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace meshwright {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNoPlanFits = 1;
inline constexpr int kExitRunFailed = 1;
inline constexpr int kExitBeyondBaseline = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadInput = 3;
inline constexpr int kExitMissingEnvironment = 4;
inline constexpr int kExitOurBug = 5;
inline constexpr int kExitInterrupted = 130;

struct Outcome {
  std::string text;  ///< for standard output
  int exit_code = kExitDone;
  std::string notes = {};  ///< for standard error, in addition to a result
  /// A thread could not be stopped: the process must exit without running destructors.
  bool leaves_a_thread = false;
};

/// --json and -o, the same for all commands.
struct OutputFlags {
  bool json = false;
  std::string file;  ///< empty: not given; "-": standard output
};
/// `content`: what -o writes, as in "write CONTENT to FILE".
void add_output_flags(CLI::App& command, OutputFlags& flags, const std::string& content);
/// Writes the text to the file of -o, or returns it for standard output.
Outcome deliver(std::string text, const OutputFlags& flags);

}  // namespace meshwright

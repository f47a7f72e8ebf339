/// What a command returns, and the options that every command has.
#pragma once

#include <string>

#include "cli/terminal/document.hpp"

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

/// --json and -o, the same for all commands; --format, of commands that print tables.
struct OutputFlags {
  bool json = false;  ///< also set by --format json
  std::string file;   ///< empty: not given; "-": standard output
  DocumentFormat format = DocumentFormat::kText;
  std::string command;  ///< name, for the title of HTML pages
};
/// `content`: what -o writes, as in "write CONTENT to FILE".
void add_output_flags(CLI::App& command, OutputFlags& flags, const std::string& content);
/// The same for commands that print tables: with --format.
void add_report_flags(CLI::App& command, OutputFlags& flags, const std::string& content);
/// The document in the format of --format; JSON is a document of one text. What CSV leaves out goes
/// to standard error.
Outcome outcome_of(const Document& document, const OutputFlags& flags);
/// Writes the document to the file of -o, or returns it for standard output.
Outcome deliver(const Document& document, const OutputFlags& flags);

}  // namespace meshwright

/// Runs a program as a user would, and captures its output.
#pragma once

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

namespace meshwright {

struct ProgramRun {
  std::string standard_output, standard_error;
  int exit_code = 0;  ///< 128 + signal when it was killed, as shells report it
};

struct ProgramCall {
  std::string program;
  std::vector<std::string> arguments;
  std::filesystem::path folder = ".";  ///< where it runs
  std::string standard_input = {};
  /// Sends SIGINT, as Ctrl-C does, 0.3 s after the program has installed a handler. Standard input
  /// stays open and empty until then.
  bool interrupt = false;
  /// Sends `signal` as soon as standard error contains this text; empty: never.
  std::string interrupt_after = {};
  /// Sends `signal` as soon as this file exists in `folder`; empty: never.
  std::string interrupt_after_file = {};
  int signal = SIGINT;
  int signals = 1;  ///< that many, 0.2 s apart
};
ProgramRun run_program(const ProgramCall& call);

/// Splits at spaces: no argument may contain one.
std::vector<std::string> words_of(const std::string& line);

/// An empty folder that is removed with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }
  std::vector<std::string> file_names() const;  ///< sorted

 private:
  std::filesystem::path path_;
};

}  // namespace meshwright

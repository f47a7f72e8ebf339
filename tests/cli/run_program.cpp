#include "tests/cli/run_program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "core/io_file.hpp"

namespace meshwright {
namespace {

/// In the child, which only may call what is safe between fork() and exec().
[[noreturn]] void become(const ProgramCall& call, std::vector<char*>& arguments,
                         const std::string& in, const std::string& out, const std::string& error) {
  constexpr int kCannotRun = 127;
  const bool is_redirected = dup2(open(in.c_str(), O_RDONLY), STDIN_FILENO) >= 0 &&
                             dup2(open(out.c_str(), O_WRONLY), STDOUT_FILENO) >= 0 &&
                             dup2(open(error.c_str(), O_WRONLY), STDERR_FILENO) >= 0;
  if (is_redirected && chdir(call.folder.c_str()) == 0)
    execv(call.program.c_str(), arguments.data());
  _exit(kCannotRun);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "meshwright-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::file_names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

ProgramRun run_program(const ProgramCall& call) {
  const TemporaryFolder streams;
  const std::string in = streams.path() / "in", out = streams.path() / "out",
                    error = streams.path() / "error";
  write_file(in, call.standard_input);
  write_file(out, "");
  write_file(error, "");

  std::vector<std::string> words{call.program};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become(call, arguments, in, out, error);
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  constexpr int kSignalled = 128;
  return {.standard_output = read_file(out),
          .standard_error = read_file(error),
          .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status)};
}

}  // namespace meshwright

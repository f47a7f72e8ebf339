#include "tests/cli/run_program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/formats/file.hpp"

namespace meshwright {
namespace {

/// In the child, which may call only async-signal-safe functions before exec().
[[noreturn]] void become(const ProgramCall& call, std::vector<char*>& arguments, int in,
                         const std::string& out, const std::string& error) {
  constexpr int kCannotRun = 127;
  const bool is_redirected = dup2(in, STDIN_FILENO) >= 0 &&
                             dup2(open(out.c_str(), O_WRONLY), STDOUT_FILENO) >= 0 &&
                             dup2(open(error.c_str(), O_WRONLY), STDERR_FILENO) >= 0;
  if (is_redirected && chdir(call.folder.c_str()) == 0)
    execv(call.program.c_str(), arguments.data());
  _exit(kCannotRun);
}

/// Whether a process has a handler of the signal: a bit of a mask in hexadecimal digits.
bool catches(pid_t process, int signal) {
  constexpr std::string_view kCaught = "SigCgt:";
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kCaught)) continue;
    const unsigned long long mask = std::stoull(line.substr(kCaught.size()), nullptr, 16);
    return (mask >> (signal - 1) & 1) != 0;
  }
  return false;
}

/// The pause lets the program reach its work.
void interrupt(pid_t child, int pipe_end) {
  constexpr int kMostLooks = 2000;  // 20 s
  for (int i = 0; i < kMostLooks && !catches(child, SIGINT); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(child, SIGINT);
  close(pipe_end);
}

bool is_time_to_interrupt(const ProgramCall& call, const std::string& error_file) {
  if (!call.interrupt_after_file.empty())
    return std::filesystem::exists(call.folder / call.interrupt_after_file);
  return read_file(error_file).find(call.interrupt_after) != std::string::npos;
}

/// Gives up after 30 s; the test then fails.
void interrupt_after(pid_t child, const ProgramCall& call, const std::string& error_file) {
  constexpr int kMostLooks = 3000;
  for (int i = 0; i < kMostLooks; ++i) {
    if (is_time_to_interrupt(call, error_file)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (int i = 0; i < call.signals; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(child, call.signal);
  }
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

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
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
  const std::string in_file = streams.path() / "in", out = streams.path() / "out",
                    error = streams.path() / "error";
  write_file(in_file, call.standard_input);
  std::array<int, 2> pipe_ends{-1, -1};
  if (call.interrupt && pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  const int in = call.interrupt ? pipe_ends[0] : open(in_file.c_str(), O_RDONLY | O_CLOEXEC);
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
  if (call.interrupt) interrupt(child, pipe_ends[1]);
  if (!call.interrupt_after.empty() || !call.interrupt_after_file.empty())
    interrupt_after(child, call, error);
  close(in);
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  constexpr int kSignalled = 128;
  return {.standard_output = read_file(out),
          .standard_error = read_file(error),
          .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status)};
}

}  // namespace meshwright

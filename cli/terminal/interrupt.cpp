#include "cli/terminal/interrupt.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

#include "core/formats/file.hpp"

namespace meshwright {
namespace {

/// Written by the signal handler, read by all threads.
std::atomic<bool> interrupted = false, interrupted_again = false;
std::atomic<int> commands_with_partial_results = 0;
std::atomic<bool> second_is_taken = false;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void handle(int) {
  if (commands_with_partial_results > 0 && !interrupted) {
    interrupted = true;
    return;
  }
  if (commands_with_partial_results > 0 && second_is_taken && !interrupted_again) {
    interrupted_again = true;
    return;
  }
  remove_unfinished_file();
  constexpr std::string_view kText = "interrupted: no results written\n";
  // Nothing is left to do if standard error is closed.
  if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) errno = 0;
  ::_exit(128 + SIGINT);  // as shells report it: kExitInterrupted
}

}  // namespace

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = handle;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

PartialResults::PartialResults(bool takes_second) {
  ++commands_with_partial_results;
  second_is_taken = takes_second;
}
PartialResults::~PartialResults() {
  second_is_taken = false;
  --commands_with_partial_results;
}

void set_interrupted(bool value) { interrupted = value; }

bool is_interrupted() { return interrupted; }

const std::atomic<bool>* interrupt_flag() { return &interrupted; }

const std::atomic<bool>* second_interrupt_flag() { return &interrupted_again; }

void stop_if_interrupted() {
  if (is_interrupted()) throw Interrupted();
}

}  // namespace meshwright

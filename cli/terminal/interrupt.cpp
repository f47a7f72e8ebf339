#include "cli/terminal/interrupt.hpp"

#include <signal.h>

#include <atomic>

namespace meshwright {
namespace {

/// Set by the signal handler, read by the threads of the search.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void set_interrupted(bool value) { interrupted = value; }

bool is_interrupted() { return interrupted; }

const std::atomic<bool>* interrupt_flag() { return &interrupted; }

void stop_if_interrupted() {
  if (is_interrupted()) throw Interrupted();
}

}  // namespace meshwright

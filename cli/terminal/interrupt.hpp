/// SIGINT (Ctrl-C) and SIGTERM. The first one sets a flag, which commands check between their
/// steps, so that no file is left half-written; the second one terminates the program.
#pragma once

#include <atomic>
#include <stdexcept>

namespace meshwright {

class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

void watch_for_interrupts();
/// What a signal does, for programs that handle signals themselves.
void set_interrupted(bool value);
bool is_interrupted();
/// The flag, for code that polls it while waiting.
const std::atomic<bool>* interrupt_flag();
/// Throws Interrupted after a Ctrl-C.
void stop_if_interrupted();

}  // namespace meshwright

/// Ctrl-C, or SIGTERM. The first one only raises a flag, which commands look at between their
/// steps, so that no file is left half-written; the second one ends the program at once.
#pragma once

#include <atomic>
#include <stdexcept>

namespace meshwright {

class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

void watch_for_interrupts();
bool is_interrupted();
/// For those who wait on other threads and look at it themselves.
const std::atomic<bool>* interrupt_flag();
/// Throws Interrupted after a Ctrl-C.
void stop_if_interrupted();

}  // namespace meshwright

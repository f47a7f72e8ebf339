/// SIGINT (Ctrl-C) and SIGTERM end the program at once, except while a command can still use what
/// it has found so far: then the first signal sets a flag, which the command polls.
#pragma once

#include <atomic>
#include <stdexcept>

namespace meshwright {

class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

/// Installs the signal handlers, for the whole process. An unfinished file of write_file() is
/// removed before the program ends.
void watch_for_interrupts();

/// While one exists, the first signal sets the flag instead of ending the program.
class PartialResults {
 public:
  PartialResults();
  ~PartialResults();
  PartialResults(const PartialResults&) = delete;
  PartialResults& operator=(const PartialResults&) = delete;
};

/// What a signal does, for programs that handle signals themselves.
void set_interrupted(bool value);
bool is_interrupted();
/// The flag, for code that polls it while waiting.
const std::atomic<bool>* interrupt_flag();
/// Throws Interrupted if the flag is set.
void stop_if_interrupted();

}  // namespace meshwright

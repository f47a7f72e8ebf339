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

/// While one exists, the first signal sets the flag instead of ending the program; with
/// `takes_second`, the second one sets another flag.
class PartialResults {
 public:
  explicit PartialResults(bool takes_second = false);
  ~PartialResults();
  PartialResults(const PartialResults&) = delete;
  PartialResults& operator=(const PartialResults&) = delete;
};

/// What a signal does, for programs that handle signals themselves.
void set_interrupted(bool value);
bool is_interrupted();
/// The flag, for code that polls it while waiting.
const std::atomic<bool>* interrupt_flag();
/// The flag of the second signal: what would take time should be left out now.
const std::atomic<bool>* second_interrupt_flag();
/// Throws Interrupted if the flag is set.
void stop_if_interrupted();

}  // namespace meshwright

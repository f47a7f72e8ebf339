/// Ctrl-C. The first one only raises a flag, which commands look at between their steps, so that
/// no file is left half-written; the second one ends the program at once.
#pragma once

#include <stdexcept>

namespace meshwright {

class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

void watch_for_interrupts();
bool is_interrupted();
/// Throws Interrupted after a Ctrl-C.
void stop_if_interrupted();

}  // namespace meshwright

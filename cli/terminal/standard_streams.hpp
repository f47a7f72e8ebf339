/// Standard streams that are closed or full.
#pragma once

#include <string_view>

namespace meshwright {

/// Occupies those of the file descriptors 0, 1 and 2 that the caller has closed, so that no file
/// opened later gets one of them. Reading or writing one then fails as on a closed descriptor.
void reserve_standard_streams();

/// Writes to standard error and ignores failure: a message that cannot be printed changes neither
/// the result nor the exit status.
void print_to_stderr(std::string_view text);

}  // namespace meshwright

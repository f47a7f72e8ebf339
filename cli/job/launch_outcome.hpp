/// The launch of a training program as the result of a command.
#pragma once

#include <string_view>

#include "cli/flags/output_flags.hpp"
#include "models/launch/launch_text.hpp"

namespace meshwright {

/// Standard output is the launch alone, so that it can be used as it is; what `program` does not
/// support is listed as warnings.
Outcome launch_outcome(std::string_view program, const LaunchText& launch,
                       const OutputFlags& flags);

}  // namespace meshwright

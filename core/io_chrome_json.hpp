/// Chrome trace-event JSON, for chrome://tracing, Perfetto and HTA. Export only, times in
/// microseconds relative to the start of the step; pid = rank, tid = stream.
#pragma once

#include <string>

#include "core/timeline.hpp"

namespace meshwright {
std::string to_chrome_json(const Timeline& timeline);
}  // namespace meshwright

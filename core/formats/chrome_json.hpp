/// Chrome trace-event JSON for chrome://tracing, Perfetto and HTA. Export only. Times are in
/// microseconds relative to the start of the step, rounded down to nanoseconds; pid = rank, tid =
/// 1,000,000 + stream (viewers sort a thread with tid == pid first, so tids exceed any rank).
#pragma once

#include <string>

#include "core/timeline/timeline.hpp"

namespace meshwright {
std::string to_chrome_json(const Timeline& timeline);
}  // namespace meshwright

/// `*.pftrace`: the native timeline file, Perfetto's TrackEvent protobuf. Opens in ui.perfetto.dev.
/// Field numbers: github.com/google/perfetto, protos/perfetto/trace. Tick precision survives: exact
/// picoseconds ride beside Perfetto's nanoseconds.
#pragma once

#include <string>
#include <string_view>

#include "core/timeline.hpp"

namespace meshwright {

std::string to_pftrace(const Timeline& timeline);
/// Reads what to_pftrace writes, equal to the original. InputError with the byte offset when the
/// bytes are not such a trace; never reads out of bounds, never allocates more than the input asks
/// for.
Timeline timeline_from_pftrace(std::string_view bytes, std::string_view where);

}  // namespace meshwright

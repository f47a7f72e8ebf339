/// Requests of schedule tests.
#pragma once

#include "core/schedule/schedule.hpp"

namespace meshwright {

/// Everything else is the default.
inline ScheduleRequest request_of(int devices, int chunks, int microbatches) {
  ScheduleRequest request;
  request.devices = devices;
  request.chunks = chunks;
  request.microbatches = microbatches;
  return request;
}

}  // namespace meshwright

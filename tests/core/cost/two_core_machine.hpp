/// The measured part of a calibration.
#pragma once

#include "core/cost/calibration.hpp"

namespace meshwright {

inline MeasuredMachine two_core_machine() {
  return {.processor = "test processor",
          .cores = 2,
          .memory = Bytes(std::int64_t{8} << 30),
          .message_latency = Seconds(1e-5),
          .message_bandwidth = BytesPerSecond(4e9),
          .memory_bandwidth = BytesPerSecond(1e10),
          .peak = {{Dtype::kFp32, FlopsPerSecond(5e10)}}};
}

}  // namespace meshwright

/// DualPipe (DeepSeek-V3, arXiv:2412.19437, 3.2.1) and DualPipeV, its fold onto half the devices:
/// micro-batches flow from both ends, and the forward of one overlaps the backward of another.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/schedule/chunk_order_writer.hpp"
#include "core/schedule/generators.hpp"

namespace meshwright {

namespace {

/// The eight phases of one device. The micro-batches of chunk 0 enter at the nearer end.
struct DualPipeDevice {
  int distance;      ///< devices between this one and the nearer end
  int half;          ///< devices from one end to the turning point
  int microbatches;  ///< per chunk
};

void write_dualpipe_order(const DualPipeDevice& device, ChunkOrderWriter& write) {
  const int before_turn = device.half - 1 - device.distance;
  const int from_end = device.distance + 1;
  for (int i = 0; i < 2 * before_turn; ++i) write.forward(0);
  for (int i = 0; i < from_end; ++i) {
    write.forward(0);
    write.forward(1);
  }
  for (int i = 0; i < before_turn; ++i) {
    write.input_keeping_weight(1);
    write.kept_weight();
    write.forward(1);
  }
  for (int i = 0; i < device.microbatches - 2 * device.half + from_end; ++i) {
    if (i == 0 && before_turn == 0) {  // at the turning point there is nothing to overlap with yet
      write.forward(0);
      write.backward(1);
    } else {
      write.overlapped(0);
    }
    write.overlapped(1);
  }
  for (int i = 0; i < before_turn; ++i) {
    write.backward(1);
    write.overlapped(1);
  }
  // From the middle of the last backwards on, weight gradients are deferred to the drain phase.
  for (int i = 0; i < 2 * from_end; ++i) {
    const auto chunk = static_cast<std::size_t>(i % 2 == 0 ? 1 : 0);
    if (i < from_end)
      write.backward(chunk);
    else
      write.input_keeping_weight(chunk);
  }
  for (int i = 0; i < before_turn; ++i) {
    write.kept_weight();
    write.input_keeping_weight(0);
  }
  for (int i = 0; i < from_end; ++i) write.kept_weight();
}

}  // namespace

Schedule generate_dualpipe(const ScheduleRequest& request) {
  const int p = request.devices;
  const int m = request.microbatches;
  Schedule schedule = empty_schedule("dualpipe", bidirectional_placement(p), m);
  for (int mb = m / 2; mb < m; ++mb) schedule.route_of_microbatch[static_cast<std::size_t>(mb)] = 1;
  for (int d = 0; d < p; ++d) {
    const StageId down(d);
    const StageId up(2 * p - 1 - d);
    auto& order = schedule.orders[static_cast<std::size_t>(d)];
    const bool upper = d < p / 2;
    ChunkOrderWriter write(upper ? std::array{down, up} : std::array{up, down}, order,
                           upper ? std::array{0, m / 2} : std::array{m / 2, 0});
    write_dualpipe_order({.distance = std::min(d, p - 1 - d), .half = p / 2, .microbatches = m / 2},
                         write);
  }
  return schedule;
}

Schedule generate_dualpipev(const ScheduleRequest& request) {
  const int p = request.devices;
  Schedule schedule = empty_schedule("dualpipev", wave_placement(p, 2), request.microbatches);
  for (int d = 0; d < p; ++d) {
    ChunkOrderWriter write({StageId(d), StageId(2 * p - 1 - d)},
                           schedule.orders[static_cast<std::size_t>(d)]);
    write_dualpipe_order({.distance = d, .half = p, .microbatches = request.microbatches}, write);
  }
  return schedule;
}

}  // namespace meshwright

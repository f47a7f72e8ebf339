/// Handcrafted schedules of Zero Bubble (Qi et al., arXiv:2401.10241): the backward is split, and
/// weight gradients fill the gaps.
#include <algorithm>

#include "core/chunk_order_writer.hpp"
#include "core/schedule_generators.hpp"

namespace meshwright {

namespace {

/// Device d runs k (p - 1 - d) forwards ahead and keeps k d weight gradients back: both together
/// hold the same number of micro-batches on every device.
Schedule delayed_weight_gradients(std::string name, const ScheduleRequest& request, int k) {
  const int p = request.devices;
  const int m = request.microbatches;
  Schedule schedule = empty_schedule(std::move(name), looped_placement(p, 1), m);
  for (int d = 0; d < p; ++d) {
    const StageId stage(d);
    auto& order = schedule.orders[static_cast<std::size_t>(d)];
    order.reserve(3 * static_cast<std::size_t>(m));
    const int warm_up = std::min(m, k * (p - 1 - d));
    for (int f = 0; f < warm_up; ++f) order.push_back({stage, Pass::kForward, MicrobatchId(f)});
    int w = 0;
    for (int b = 0; b < m; ++b) {
      const int f = warm_up + b;
      if (f < m) order.push_back({stage, Pass::kForward, MicrobatchId(f)});
      order.push_back({stage, Pass::kBackwardInput, MicrobatchId(b)});
      if (b - w >= k * d) order.push_back({stage, Pass::kBackwardWeight, MicrobatchId(w++)});
    }
    for (; w < m; ++w) order.push_back({stage, Pass::kBackwardWeight, MicrobatchId(w)});
  }
  return schedule;
}

}  // namespace

Schedule generate_zb_h1(const ScheduleRequest& request) {
  return delayed_weight_gradients("zb-h1", request, 1);
}

Schedule generate_zb_h2(const ScheduleRequest& request) {
  return delayed_weight_gradients("zb-h2", request, 2);
}

/// ZB-V (section 6): two chunks in a V, so that first and last stage share device 0. Written for
/// m >= 2p - 1; with fewer, the order of 2p - 1 micro-batches without those that do not exist.
Schedule generate_zb_v(const ScheduleRequest& request) {
  const int p = request.devices;
  const int m = request.microbatches;
  const int rounds = std::max(m, 2 * p - 1);
  Schedule schedule = empty_schedule("zb-v", wave_placement(p, 2), m);
  for (int d = 0; d < p; ++d) {
    auto& order = schedule.orders[static_cast<std::size_t>(d)];
    ChunkOrderWriter write({StageId(d), StageId(2 * p - 1 - d)}, order);
    for (int i = 0; i < 2 * (p - d) - 1; ++i) write.forward(0);
    for (int i = 0; i < d; ++i) {
      write.forward(1);
      write.forward(0);
    }
    for (int i = 0; i < p - d; ++i) {
      write.forward(1);
      write.input_and_weight(1);
    }
    while (write.forwards(1) < rounds) {
      if (write.forwards(0) < rounds) write.forward(0);
      write.input_and_weight(0);
      write.forward(1);
      write.input_and_weight(1);
    }
    for (int i = 0; i < d; ++i) {
      write.input(0);
      write.input(1);
    }
    for (int i = 0; i < p - d; ++i) {
      write.input(0);
      write.weight(0);
    }
    for (const std::size_t chunk : {1u, 0u})
      while (write.weights(chunk) < rounds) write.weight(chunk);
    std::erase_if(order, [&](const Action& a) { return a.microbatch.value >= m; });
  }
  return schedule;
}

}  // namespace meshwright

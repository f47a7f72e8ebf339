/// Schedules that loop over several chunks per device: interleaved 1F1B and breadth-first.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/schedule/generators.hpp"

namespace meshwright {

int microbatch_group_of(const ScheduleRequest& request) {
  return request.microbatch_group.value_or(request.devices);
}

namespace {

struct ChunkVisit {
  int chunk;
  int microbatch;
};

/// The forwards of a device: one group of micro-batches after another, and chunk by chunk within a
/// group. The last group is smaller if the group size does not divide m.
std::vector<ChunkVisit> chunk_visits(int chunks, int microbatches, int group) {
  std::vector<ChunkVisit> visits;
  visits.reserve(static_cast<std::size_t>(chunks) * static_cast<std::size_t>(microbatches));
  for (int first = 0; first < microbatches; first += group)
    for (int c = 0; c < chunks; ++c)
      for (int mb = first; mb < std::min(first + group, microbatches); ++mb)
        visits.push_back({c, mb});
  return visits;
}

}  // namespace

/// Interleaved 1F1B (Narayanan et al., arXiv:2104.04473, 2.2.2). Backwards visit the chunks in the
/// order of the forwards, last chunk first. Device d runs 2 (p - 1 - d) + (v - 1) g chunk forwards
/// ahead, where g is the group size.
Schedule generate_interleaved_1f1b(const ScheduleRequest& request) {
  const int p = request.devices;
  const int v = request.chunks;
  const int group = microbatch_group_of(request);
  Schedule schedule =
      empty_schedule("interleaved-1f1b", looped_placement(p, v), request.microbatches);
  const std::vector<ChunkVisit> visits = chunk_visits(v, request.microbatches, group);
  for (int d = 0; d < p; ++d) {
    const auto forward = [&](const ChunkVisit& visit) {
      return Action{StageId(visit.chunk * p + d), Pass::kForward, MicrobatchId(visit.microbatch)};
    };
    const auto backward = [&](const ChunkVisit& visit) {
      return Action{StageId((v - 1 - visit.chunk) * p + d), Pass::kBackward,
                    MicrobatchId(visit.microbatch)};
    };
    const std::size_t warm_up =
        std::min(visits.size(), static_cast<std::size_t>(2 * (p - 1 - d) + (v - 1) * group));
    auto& order = schedule.orders[static_cast<std::size_t>(d)];
    order.reserve(2 * visits.size());
    for (std::size_t f = 0; f < warm_up; ++f) order.push_back(forward(visits[f]));
    for (std::size_t b = 0; b < visits.size(); ++b) {
      if (warm_up + b < visits.size()) order.push_back(forward(visits[warm_up + b]));
      order.push_back(backward(visits[b]));
    }
  }
  return schedule;
}

/// Breadth-first (Lamy-Poirier, arXiv:2211.05953; LoopedBFS): all micro-batches through one chunk
/// before the next chunk. Backwards keep the order of the micro-batches; PyTorch's LoopedBFS
/// reverses it.
Schedule generate_breadth_first(const ScheduleRequest& request) {
  const int p = request.devices;
  const int v = request.chunks;
  const int m = request.microbatches;
  Schedule schedule = empty_schedule("breadth-first", looped_placement(p, v), m);
  for (int d = 0; d < p; ++d) {
    auto& order = schedule.orders[static_cast<std::size_t>(d)];
    order.reserve(2 * static_cast<std::size_t>(v) * static_cast<std::size_t>(m));
    const auto all_microbatches = [&](int chunk, Pass pass) {
      for (int mb = 0; mb < m; ++mb)
        order.push_back({StageId(chunk * p + d), pass, MicrobatchId(mb)});
    };
    for (int c = 0; c < v; ++c) all_microbatches(c, Pass::kForward);
    for (int c = v - 1; c >= 0; --c) all_microbatches(c, Pass::kBackward);
  }
  return schedule;
}

}  // namespace meshwright

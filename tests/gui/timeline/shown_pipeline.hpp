/// A simulated pipeline to display: F 1 ms, B 2 ms, messages of 0.1 ms.
#pragma once

#include <memory>
#include <string_view>

#include "core/timeline/timeline_of.hpp"
#include "gui/timeline/causes.hpp"
#include "gui/timeline/tracks.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright::gui {

struct ShownPipeline {
  std::shared_ptr<const TimelineTracks> tracks;
  std::shared_ptr<const TimelineCauses> causes;
};

inline ShownPipeline shown_pipeline(std::string_view schedule, const PipelineSize& size,
                                    Ticks forward = Ticks(1'000'000'000)) {
  const StageTimes times =
      uniform_times(size.devices * size.chunks, forward, Ticks(1'200'000'000), Ticks(800'000'000));
  const GraphBuilder built = pipeline_graph(
      schedule_of(schedule, size), times,
      {.bytes = Bytes(8), .occupancy = Ticks(100'000'000), .latency = Ticks(10'000'000)});
  const SimulatedTimes simulated = simulate(built.graph, built.prices);
  TimelineTracks tracks = timeline_tracks_of(built.graph, simulated);
  for (TimelineRow& row : tracks.rows) row.pipeline_rank = row.rank;
  auto causes =
      std::make_shared<TimelineCauses>(timeline_causes_of(built.graph, simulated, tracks));
  return {std::make_shared<const TimelineTracks>(std::move(tracks)), std::move(causes)};
}

}  // namespace meshwright::gui

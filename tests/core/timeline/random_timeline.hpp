/// Random timelines for round-trip tests, deterministic for each seed.
#pragma once

#include <random>
#include <string>

#include "core/timeline/timeline.hpp"

namespace meshwright {

struct RandomTimeline {
  int ranks = 3;
  int spans_per_track = 20;
  bool derived_names = true;  ///< most names are derived from their spans
};

inline Timeline random_timeline(unsigned seed, const RandomTimeline& shape = {}) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<std::int32_t>(random() % n); };
  Timeline t;
  t.origin = static_cast<TimelineOrigin>(below(2));
  t.clock = static_cast<TimelineClock>(below(4));
  t.provenance = {{"program", "test"}, {"plan", "x \"quoted\" \n"}, {"", "empty key"}};
  for (std::int32_t r = 0; r < shape.ranks; ++r)
    for (int s = 0; s < kStreamCount; s += 1 + below(3))
      t.tracks.push_back({RankId(7 * r), static_cast<Stream>(s)});
  for (std::size_t track = 0; track < t.tracks.size(); ++track) {
    Ticks now(below(5000));
    for (int i = 0; i < shape.spans_per_track; ++i) {
      TimelineSpan span;
      span.track = static_cast<std::int32_t>(track);
      span.start = now + Ticks(below(2) * below(3000));
      span.end = span.start + Ticks(below(4) * below(700'000));  // some are empty
      now = span.end;
      span.microbatch = below(40) - 1;
      span.stage = static_cast<std::int16_t>(below(9) - 1);
      span.kind = static_cast<TaskKind>(below(kTaskKindCount));
      span.name = static_cast<std::int32_t>(t.spans.size());
      t.spans.push_back(span);
      std::string name = "measured.kernel<\xc3\xa9>";
      if (shape.derived_names && below(8) > 0) {
        name = "r" + std::to_string(t.tracks[track].rank.value) + ".";
        name += name_of(t.tracks[track].stream);
        if (span.stage >= 0) name += ".s" + std::to_string(span.stage);
        name += "." + std::string(name_of(span.kind));
        if (span.microbatch >= 0) name += std::to_string(span.microbatch);
        if (below(4) == 0) name += below(2) == 0 ? "#2" : "#02";
      }
      t.names.push_back(name);
    }
  }
  t.names.push_back("a name of no span");
  // The order of names differs from that of spans.
  for (std::size_t i = t.spans.size(); i-- > 1;) {
    const auto j = static_cast<std::size_t>(below(static_cast<unsigned>(i + 1)));
    const auto of_i = static_cast<std::size_t>(t.spans[i].name);
    const auto of_j = static_cast<std::size_t>(t.spans[j].name);
    const std::string name(t.names[of_i]);
    t.names.set(of_i, t.names[of_j]);
    t.names.set(of_j, name);
    std::swap(t.spans[i].name, t.spans[j].name);
  }
  const auto spans = static_cast<unsigned>(t.spans.size());
  for (unsigned i = 0; i < spans / 4; ++i) t.flows.push_back({below(spans), below(spans)});
  for (std::int32_t r = 0; r < shape.ranks; ++r) {
    MemorySample sample{Ticks(0), 7 * r, {}};
    for (int i = 0; i < 20; ++i) {
      sample.time += Ticks(below(3) * below(2'000'000));
      if (i != 4) sample.amounts.by_class[random() % kMemoryClassCount] = Bytes(below(1u << 30));
      if (i != 0 || r != 1) t.memory.push_back(sample);
    }
  }
  return t;
}

}  // namespace meshwright

#include "core/formats/chrome_json.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/core/timeline/random_timeline.hpp"
#include "tests/golden.hpp"

namespace meshwright {
namespace {

/// Forward on rank 0, its message, backward on rank 1; one memory sample.
Timeline three_spans() {
  Timeline t;
  t.provenance = {{"plan", "a \"b\"\\\n"}};
  t.tracks = {
      {RankId(0), Stream::kCompute}, {RankId(0), Stream::kSendNext}, {RankId(1), Stream::kCompute}};
  t.names = {"r0.compute.s0.F0", "r0.send", "r1.compute.s1.B0"};
  t.spans = {{Ticks(0), Ticks(1'500'000), 0, 0, 0, 0, TaskKind::kForward},
             {Ticks(1'500'000), Ticks(1'500'999), 1, 1, 0, 0, TaskKind::kSend},
             {Ticks(2'000'000), Ticks(5'020'000), 2, 2, 0, 1, TaskKind::kBackward}};
  t.flows = {{1, 2}};
  MemorySample sample{Ticks(1'000), 0, {}};
  sample.amounts[MemoryClass::kWeights] = Bytes(1024);
  t.memory = {sample};
  return t;
}

TEST(ChromeJson, LooksAsTheGoldenFileDoes) {
  expect_golden(to_chrome_json(three_spans()), "three_spans.chrome.json");
}

TEST(ChromeJson, EscapesTextsAndReplacesWhatIsNotUtf8) {
  Timeline t = three_spans();
  t.names.set(0, "q\" b\\ n\n e\xc3\xa9 bad\xff\xc3 \xed\xa0\x80 cut\xe2\x82");
  const auto json = nlohmann::json::parse(to_chrome_json(t));
  EXPECT_EQ(json["otherData"]["plan"], "a \"b\"\\\n");
  for (const auto& e : json["traceEvents"])
    if (e["ph"] == "X" && e["name"] == name_of(TaskKind::kForward)) {
      EXPECT_EQ(e["args"]["task"],
                "q\" b\\ n\n e\xc3\xa9 bad\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd"
                "\xef\xbf\xbd cut\xef\xbf\xbd\xef\xbf\xbd");
    }
}

// Perfetto reads microseconds as doubles and rounds them to nanoseconds.
TEST(ChromeJson, SpansOfAThreadDoNotOverlapAfterRoundingToNanoseconds) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    const Timeline timeline = random_timeline(seed);
    const auto json = nlohmann::json::parse(to_chrome_json(timeline));
    std::map<std::pair<int, int>, long long> last_end;
    std::size_t spans = 0, flows = 0, samples = 0;
    for (const auto& e : json["traceEvents"]) {
      const std::string phase = e["ph"];
      flows += phase == "s" || phase == "f";
      samples += phase == "C";
      if (phase != "X") continue;
      const auto ns = [&](const char* key) { return std::llround(e[key].get<double>() * 1000); };
      long long& end = last_end[{e["pid"].get<int>(), e["tid"].get<int>()}];
      EXPECT_GE(ns("ts"), end) << "seed " << seed;
      end = ns("ts") + ns("dur");
      EXPECT_EQ(ns("ts"), timeline.spans[spans].start.value / 1000);
      ++spans;
    }
    EXPECT_EQ(spans, timeline.spans.size());
    EXPECT_EQ(flows, 2 * timeline.flows.size());
    EXPECT_EQ(samples, timeline.memory.size());
  }
}

}  // namespace
}  // namespace meshwright

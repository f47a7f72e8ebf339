#include "core/formats/trace_events.hpp"

#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "core/formats/chrome_json.hpp"
#include "tests/core/timeline/random_timeline.hpp"

namespace meshwright {
namespace {

/// Modeled by hand on the output of PyTorch's profiler (kineto, libkineto/src/output_json.cpp).
constexpr std::string_view kKineto = R"({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "baseTimeNanoseconds": 1000,
  "traceEvents": [
  {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}},
  {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
  {"ph": "X", "cat": "kernel", "name": "void gemm<\"a\">", "pid": 0, "tid": 7,
   "ts": 12.345, "dur": 2.5, "args": {"grid": [1, 2, 3], "stream": 7}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 7, "ts": 20,
   "dur": 5, "args": {"Collective name": "allreduce", "Process Group Name": "tp", "Seq": 4,
                      "In msg nelems": 1024}},
  {"ph": "B", "name": "outer", "pid": 1, "tid": "main", "ts": 1},
  {"ph": "B", "name": "inner", "pid": 1, "tid": "main", "ts": 2},
  {"ph": "E", "pid": 1, "tid": "main", "ts": 3},
  {"ph": "E", "pid": 1, "tid": "main", "ts": 4},
  {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 5, "pid": 1, "tid": "main", "ts": 2},
  {"ph": "X", "name": "without a time", "pid": 0, "tid": 7},
  {"ph": "i", "name": "instant", "pid": 0, "tid": 7, "ts": 1, "s": "g"},
  {"ph": "X", "name": "runs backwards", "pid": 0, "tid": 7, "ts": 1, "dur": -3}
  ], "traceName": "x"})";

TEST(TraceEvents, HoldWhatAProfilerWrote) {
  const TraceEvents t = read_trace_events(kKineto, "k.json");
  EXPECT_EQ(t.rank, 3);
  EXPECT_EQ(t.world_size, 8);
  EXPECT_EQ(t.dropped, 2U);
  ASSERT_EQ(t.slices.size(), 4U);
  EXPECT_EQ(t.names[t.slices[0].name], "void gemm<\"a\">");
  EXPECT_EQ(t.slices[0].start_ns, 1000 + 12'345);  // the base time is nanoseconds
  EXPECT_EQ(t.slices[0].duration_ns, 2'500);
  EXPECT_EQ(t.threads[t.slices[0].thread].name, "stream 7");
  EXPECT_EQ(t.threads[t.slices[0].thread].process, "python");
  const TraceDetail& d = t.details.at(static_cast<std::size_t>(t.slices[1].detail));
  EXPECT_EQ(t.names.at(static_cast<std::size_t>(d.collective)), "allreduce");
  EXPECT_EQ(d.sequence, 4);
  EXPECT_EQ(t.names[t.slices[2].name], "inner");
  EXPECT_EQ(t.slices[3].duration_ns, 3'000);
  EXPECT_EQ(t.threads[t.slices[3].thread].id, "main");
  EXPECT_TRUE(t.flows.empty());
}

TEST(TraceEvents, MayBeABareArray) {
  const TraceEvents t = read_trace_events(
      R"([{"ph":"X","name":"a","pid":1,"tid":2,"ts":"5","dur":"1.5"}])", "a.json");
  ASSERT_EQ(t.slices.size(), 1U);
  EXPECT_EQ(t.slices[0].start_ns, 5000);
  EXPECT_EQ(t.slices[0].duration_ns, 1500);
}

// Round trip of our own traces: spans to the nanosecond, flows, memory.
TEST(TraceEvents, ReadWhatWeWrite) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Timeline timeline = random_timeline(seed);
    const TraceEvents t = read_trace_events(to_chrome_json(timeline), "ours.json");
    ASSERT_EQ(t.slices.size(), timeline.spans.size());
    EXPECT_EQ(t.dropped, 0U);
    EXPECT_EQ(t.origin, timeline.origin == TimelineOrigin::kPredicted ? "predicted" : "measured");
    for (std::size_t i = 0; i < t.slices.size(); ++i) {
      EXPECT_EQ(t.slices[i].start_ns, timeline.spans[i].start.value / kTicksPerNanosecond);
      EXPECT_EQ(t.slices[i].start_ns + t.slices[i].duration_ns,
                timeline.spans[i].end.value / kTicksPerNanosecond);
      EXPECT_EQ(t.names[t.slices[i].name], name_of(timeline.spans[i].kind));
      const TraceDetail& d = t.details.at(static_cast<std::size_t>(t.slices[i].detail));
      EXPECT_EQ(d.microbatch, timeline.spans[i].microbatch);
      EXPECT_EQ(d.stage, timeline.spans[i].stage);
    }
    EXPECT_EQ(t.flows.size(), timeline.flows.size());
    ASSERT_EQ(t.memory.size(), timeline.memory.size());
  }
}

TEST(TraceEvents, OfBrokenFilesAreRefusedWithTheByte) {
  for (const std::string_view text :
       {"", "7", "{}", R"({"traceEvents":[{"ph":)", R"({"traceEvents":[]} x)", "\"text\"",
        R"({"traceEvents":{}})"})
    EXPECT_THROW(read_trace_events(text, "f"), InputError) << text;
}

// Any truncation or changed byte is either rejected or read, and never crashes (run with
// sanitizers).
TEST(TraceEvents, SurviveDamage) {
  const std::string sound(kKineto);
  for (std::size_t i = 0; i < sound.size(); i += 3) {
    std::string cut = sound.substr(0, i), changed = sound;
    changed[i] = static_cast<char>(changed[i] ^ 0x15);
    for (const std::string& text : {cut, changed}) {
      try {
        read_trace_events(text, "f");
      } catch (const InputError&) {
      }
    }
  }
}

// Sums of start, base and duration stay within int64.
TEST(TraceEvents, DropTimesBeyondAllClocks) {
  const TraceEvents t = read_trace_events(
      R"({"baseTimeNanoseconds":2400000000000000000,"traceEvents":[
        {"ph":"X","name":"a","pid":1,"tid":1,"ts":3999999999999999,"dur":1},
        {"ph":"X","name":"b","pid":1,"tid":1,"ts":1,"dur":3999999999999999},
        {"ph":"X","name":"c","pid":1,"tid":1,"ts":-3999999999999999,"dur":1}]})",
      "f");
  EXPECT_EQ(t.dropped, 2U);
  EXPECT_EQ(t.slices.size(), 1U);
}

}  // namespace
}  // namespace meshwright

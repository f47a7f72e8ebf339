#include "gui/timeline/trace_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/base/error.hpp"
#include "core/formats/chrome_json.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "gui/timeline/trace_files.hpp"
#include "tests/core/timeline/random_timeline.hpp"

namespace meshwright::gui {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PipelineAction, ParsesPyTorchNames) {
  EXPECT_EQ(pipeline_action("PP:2F0"), (PipelineAction{2, 0, SliceKind::kForward}));
  EXPECT_EQ(pipeline_action("PP:5B13"), (PipelineAction{5, 13, SliceKind::kBackward}));
  EXPECT_EQ(pipeline_action("PP:1I2"), (PipelineAction{1, 2, SliceKind::kBackwardInput}));
  EXPECT_EQ(pipeline_action("PP:1W2"), (PipelineAction{1, 2, SliceKind::kBackwardWeight}));
  for (const char* name : {"PP:3SEND_F1", "PP:", "PP:F1", "PP:1F", "PP:1F2x", "1F2", "", "PP:-1F2",
                           "PP:99999999999F1", "PP:(0F4;7B0)OVERLAP_F_B"})
    EXPECT_FALSE(pipeline_action(name)) << name;
}

/// One rank: a stream with two passes and a nested kernel, an all-reduce that ends at `end_us`, and
/// a host thread with nested operators.
std::string kineto(int rank, double shift_us, double end_us) {
  const auto slice = [&](const std::string& fields, double start_us, double duration_us) {
    return ",{\"ph\":\"X\"," + fields + ",\"ts\":" + std::to_string(start_us + shift_us) +
           ",\"dur\":" + std::to_string(duration_us) + "}";
  };
  return R"({"distributedInfo":{"rank":)" + std::to_string(rank) +
         R"(,"world_size":2},"traceEvents":[
    {"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7"}},
    {"ph":"M","name":"thread_name","pid":0,"tid":20,"args":{"name":"stream 20"}})" +
         slice(R"("cat":"gpu_user_annotation","name":"PP:0F0","pid":0,"tid":7)", 10, 10) +
         slice(R"("cat":"kernel","name":"gemm","pid":0,"tid":7)", 11, 8) +
         slice(R"("cat":"gpu_user_annotation","name":"PP:0B0","pid":0,"tid":7)", 30, 20) +
         slice(R"("cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":20,)"
               R"("args":{"Collective name":"allreduce","Process Group Name":"dp","Seq":1})",
               60, end_us - 60) +
         slice(R"("cat":"cpu_op","name":"aten::mm","pid":99,"tid":1)", 5, 20) +
         slice(R"("cat":"cpu_op","name":"aten::mm_inner","pid":99,"tid":1)", 6, 2) +
         slice(R"("cat":"user_annotation","name":"ProfilerStep#3","pid":99,"tid":1)", 100, 2) +
         "]}";
}

TEST(TraceRows, FindTheComputeStreamAndSeparateNestedSlices) {
  const TimelineTracks tracks = tracks_of_trace(kineto(1, 0, 70), "rank1.json");
  EXPECT_THAT(check_timeline_tracks(tracks), IsEmpty());
  std::vector<std::string> rows;
  for (const TimelineRow& row : tracks.rows) rows.push_back(row.label);
  EXPECT_THAT(rows,
              ElementsAre("stream 7", "stream 7 (2)", "stream 20", "thread 1", "thread 1 (2)"));
  EXPECT_TRUE(tracks.rows[0].is_compute);
  EXPECT_EQ(tracks.rows[0].rank, 1);
  EXPECT_EQ(short_name(tracks, 0), "F0");
  EXPECT_EQ(tracks.kind[1], SliceKind::kBackward);
  EXPECT_EQ(tracks.label_of(1).stage, 0);
  EXPECT_EQ(tracks.kind[3], SliceKind::kCollective);
  EXPECT_EQ(tracks.start_ns[0], 5000);  // the first slice of all began at 5 us
  EXPECT_EQ(tracks.iterations, std::vector<Nanoseconds>{Nanoseconds(95'000)});
  EXPECT_EQ(tracks.origin, TimelineOrigin::kMeasured);
}

// The same step on the host and on the device of two ranks; another is on the host only.
TEST(TraceRows, CountEveryStepOnceAndStartItOnTheDevice) {
  std::vector<RankTrace> traces;
  for (const int rank : {0, 1}) {
    const std::string bytes = R"({"traceEvents":[
      {"ph":"X","cat":"user_annotation","name":"ProfilerStep#7","pid":9,"tid":1,"ts":10,"dur":40},
      {"ph":"X","cat":"gpu_user_annotation","name":"ProfilerStep#7","pid":0,"tid":7,"ts":)" +
                              std::to_string(20 - rank) + R"(,"dur":40},
      {"ph":"X","cat":"user_annotation","name":"ProfilerStep#8","pid":9,"tid":1,"ts":)" +
                              std::to_string(60 - rank) + R"(,"dur":40}]})";
    traces.push_back(
        {.events = read_trace_events(bytes, "x.json"), .rank = rank, .where = "x.json"});
  }
  EXPECT_THAT(tracks_of_events(traces).iterations,
              ElementsAre(Nanoseconds(9000), Nanoseconds(49'000)));
}

TEST(KernelFamily, FollowsTheNamesOfCommonKernels) {
  const std::pair<const char*, SliceKind> kNames[]{
      {"ampere_sgemm_128x64_tn", SliceKind::kMatmul},
      {"nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT", SliceKind::kMatmul},
      {"void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", SliceKind::kAttention},
      {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", SliceKind::kAttention},
      {"void at::native::vectorized_layer_norm_kernel<float>", SliceKind::kNormalization},
      {"void softmax_warp_forward<float>", SliceKind::kNormalization},
      {"void at::native::vectorized_elementwise_kernel<4>", SliceKind::kElementwise},
      {"void at::native::index_kernel", SliceKind::kKernel}};
  for (const auto& [name, family] : kNames) EXPECT_EQ(kernel_family(name), family) << name;
}

TEST(TraceRows, NameTheProcessesOfChromeTraces) {
  const TimelineTracks tracks = tracks_of_trace(R"({"traceEvents":[
      {"ph":"M","name":"process_name","pid":1,"args":{"name":"loader"}},
      {"ph":"X","name":"read","pid":1,"tid":5,"ts":1,"dur":5},
      {"ph":"X","name":"train","pid":2,"tid":5,"ts":2,"dur":5}]})",
                                                "t.json");
  std::vector<std::string> rows;
  for (const TimelineRow& row : tracks.rows) rows.push_back(row.label);
  EXPECT_THAT(rows, ElementsAre("loader: thread 5", "process 2: thread 5"));
}

// Rank 1's clock is 1000 us ahead; both leave the all-reduce at 70 us of rank 0's clock.
TEST(ClockAlignment, AlignsRanksAtTheEndsOfCollectives) {
  std::vector<RankTrace> traces(2);
  traces[0] = {.events = read_trace_events(kineto(0, 0, 70), "a"), .rank = 0, .where = "a"};
  traces[1] = {.events = read_trace_events(kineto(1, 1000, 70), "b"), .rank = 1, .where = "b"};
  const ClockAlignment alignment = align_clocks(traces);
  EXPECT_EQ(traces[0].clock_shift_ns, 0);
  EXPECT_EQ(traces[1].clock_shift_ns, -1'000'000);
  EXPECT_EQ(alignment.residual, Nanoseconds(0));
  EXPECT_EQ(alignment.shared, 1U);
  const TimelineTracks tracks = tracks_of_events(traces);
  EXPECT_EQ(tracks.start_ns[tracks.row_begin[0]], tracks.start_ns[tracks.row_begin[5]]);
}

TEST(ClockAlignment, ReportsRanksWithoutCommonCollectives) {
  std::vector<RankTrace> traces(2);
  traces[0] = {.events = read_trace_events(kineto(0, 0, 70), "a"), .rank = 0, .where = "a"};
  traces[1] = {.events = read_trace_events("[]", "b"), .rank = 5, .where = "b"};
  EXPECT_THAT(align_clocks(traces).alone, ElementsAre(5));
}

// A Meshwright timeline has the same slices when saved as Chrome JSON, .pftrace or gzipped.
TEST(TraceFiles, ReadTheSameTimelineFromEveryFormat) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const Timeline timeline = random_timeline(seed);
    const TimelineTracks wanted = timeline_tracks_of(timeline);
    const TimelineTracks native = tracks_of_trace(to_pftrace(timeline), "t.pftrace");
    EXPECT_EQ(native.start_ns, wanted.start_ns);
    EXPECT_EQ(native.arrows, wanted.arrows);
    const TimelineTracks json = tracks_of_trace(to_chrome_json(timeline), "t.json");
    EXPECT_THAT(check_timeline_tracks(json), IsEmpty());
    ASSERT_EQ(json.slice_count(), wanted.slice_count());
    for (std::size_t row = 0; row < wanted.rows.size(); ++row) {
      const auto other = std::find_if(json.rows.begin(), json.rows.end(), [&](const auto& r) {
        return r.rank == wanted.rows[row].rank && r.stream == wanted.rows[row].stream;
      });
      if (wanted.row_begin[row] == wanted.row_begin[row + 1]) continue;
      ASSERT_NE(other, json.rows.end());
      EXPECT_EQ(other->is_compute, wanted.rows[row].is_compute);
      const auto o = static_cast<std::size_t>(other - json.rows.begin());
      for (std::size_t i = 0; i < wanted.row_begin[row + 1] - wanted.row_begin[row]; ++i) {
        EXPECT_EQ(json.start_ns[json.row_begin[o] + i], wanted.start_ns[wanted.row_begin[row] + i]);
        EXPECT_EQ(json.kind[json.row_begin[o] + i], wanted.kind[wanted.row_begin[row] + i]);
      }
    }
  }
}

std::string gzipped(const std::string& text) {
  std::string out(compressBound(static_cast<uLong>(text.size())) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST(TraceFiles, ReadGzipAndRejectTruncatedFiles) {
  const std::string json = kineto(0, 0, 70), zipped = gzipped(json);
  EXPECT_EQ(tracks_of_trace(zipped, "t.json.gz").slice_count(),
            tracks_of_trace(json, "t.json").slice_count());
  for (std::size_t n = 2; n < zipped.size(); n += 7)
    EXPECT_THROW(tracks_of_trace(zipped.substr(0, n), "t"), InputError) << n;
}

TEST(TraceFiles, RejectDuplicateRanks) {
  const std::string folder = testing::TempDir();
  write_file(folder + "/a_rank0.json", kineto(0, 0, 70));
  write_file(folder + "/b_rank0.json", kineto(0, 5, 70));
  write_file(folder + "/c_rank1.json", kineto(1, 5, 70));
  EXPECT_THROW(read_trace_files({folder + "/a_rank0.json", folder + "/b_rank0.json"}), InputError);
  int calls = 0;
  const TimelineTracks both = read_trace_files(
      {folder + "/c_rank1.json", folder + "/a_rank0.json"},
      {.report = [&](std::int64_t done, std::int64_t of) { calls += done <= of; }});
  EXPECT_GE(calls, 2);
  EXPECT_EQ(both.rows.front().rank, 0);
  EXPECT_EQ(both.rows.back().rank, 1);
  EXPECT_THAT(both.notes.front(), testing::HasSubstr("1 shared collectives"));
}

TEST(TraceFiles, RejectUnknownFormats) {
  for (const std::string text : {"", "plain text", "\x1f\x8b", "<xml/>"})
    EXPECT_THROW(tracks_of_trace(text, "f"), InputError) << text;
}

// A round trip through a core timeline is lossless.
TEST(TimelineOfTracks, ReturnsTheSameSlices) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    const TimelineTracks tracks = timeline_tracks_of(random_timeline(seed));
    std::vector<std::size_t> rows(tracks.rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = r;
    const Timeline back =
        timeline_of_tracks(tracks, rows, Nanoseconds(-1), tracks.end + Nanoseconds(1));
    EXPECT_THAT(check_timeline(back), IsEmpty());
    const TimelineTracks again = timeline_tracks_of(back);
    EXPECT_EQ(again.slice_count(), back.spans.size());
    // Empty slices at the very start end before the window and are omitted.
    EXPECT_GE(again.slice_count() + 20, tracks.slice_count());
  }
}

}  // namespace
}  // namespace meshwright::gui

#include "core/formats/schedule_csv.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/schedule/timing.hpp"
#include "tests/complaints.hpp"
#include "tests/core/schedule/schedule_request.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string artifact(const std::string& file) {
  std::ifstream in(std::string(MESHWRIGHT_SOURCE_DIR) + "/tests/core/schedule/data/" + file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string message_of(std::string_view text) {
  return format(diagnostics_of([&] { read_schedule_csv(text, "s", "s.csv"); }).at(0));
}

// pytorch/pytorch@a2af973f46e7172e0494afebc88090d1a07eae66: dualpipev_4rank_10mb.csv
TEST(ScheduleCsv, DualPipeVEqualsPyTorchsFileActionByAction) {
  const std::string file = artifact("pytorch_dualpipev_4rank_10mb.csv");
  const Schedule ours = find_schedule_rule("dualpipev")->generate(request_of(4, 2, 10));
  EXPECT_EQ(write_schedule_csv(ours), file);
  const ImportedSchedule theirs = read_schedule_csv(file, "dualpipev", "dualpipev.csv");
  EXPECT_EQ(theirs.schedule, ours);
  EXPECT_EQ(theirs.dialect, CsvDialect::kCurrent);
  EXPECT_THAT(theirs.notes, IsEmpty());
}

// pytorch/pytorch@15380b18b0ecd42d0cc3c238654532de680d8611: zb1p_2rank_2stagep_compute.csv. In unit
// times it takes 49 slots, 48 of them work; 4 and 3 chunks wait for their input gradient.
TEST(ScheduleCsv, ReadsTheOldDialectOfPyTorchsZeroBubbleFile) {
  const ImportedSchedule zb1p =
      read_schedule_csv(artifact("pytorch_zb1p_2rank_2stagep_compute.csv"), "zb1p", "zb1p.csv");
  EXPECT_EQ(zb1p.dialect, CsvDialect::kOld);
  EXPECT_THAT(check_schedule(zb1p.schedule), IsEmpty());
  const ScheduleTiming timing =
      time_schedule(zb1p.schedule, uniform_times(4, Ticks(1), Ticks(1), Ticks(1)));
  EXPECT_EQ(timing.makespan, Ticks(49));
  EXPECT_NEAR(timing.makespan_bubble, 1.0 / 49.0, 1e-12);
  EXPECT_THAT(peak_activations(zb1p.schedule, 1.0), ElementsAre(4 / 2.0, 3 / 2.0));
}

TEST(ScheduleCsv, ReadsBackEveryScheduleInBothContentsAndDialects) {
  for (const ScheduleRule& rule : schedule_rules())
    for (const int v : {1, 2}) {
      const ScheduleRequest request = request_of(4, v, 8);
      if (rule.problem(request)) continue;
      const Schedule schedule = rule.generate(request);
      if (schedule.placement.routes.size() > 1 || schedule.output_barriers > 0) continue;
      for (const auto content : {CsvContent::kComputeOnly, CsvContent::kWithCommunication})
        for (const auto dialect : {CsvDialect::kCurrent, CsvDialect::kOld}) {
          const auto back = read_schedule_csv(write_schedule_csv(schedule, content, dialect),
                                              schedule.name, "s.csv");
          EXPECT_EQ(back.schedule, schedule) << rule.name;
        }
    }
}

TEST(ScheduleCsv, WritesReceivesBeforeAndSendsAfter) {
  const Schedule schedule = find_schedule_rule("1f1b")->generate(request_of(2, 1, 1));
  EXPECT_EQ(write_schedule_csv(schedule, CsvContent::kWithCommunication),
            "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_EQ(write_schedule_csv(schedule, CsvContent::kComputeOnly, CsvDialect::kOld),
            "0F0,0BW0\n1F0,1BW0\n");
}

TEST(ScheduleCsv, LeavesOutWhatIsNoPassWithANote) {
  const auto read = read_schedule_csv("0UNSHARD,0F0,,0B0,0REDUCE_GRAD,0RESHARD\r\n", "s", "s.csv");
  EXPECT_EQ(to_text(read.schedule.orders[0]), "0F0 0B0");
  EXPECT_THAT(
      read.notes,
      ElementsAre("ignored 1 x REDUCE_GRAD: communication is derived from the order of the passes",
                  "ignored 1 x RESHARD: communication is derived from the order of the passes",
                  "ignored 1 x UNSHARD: communication is derived from the order of the passes"));
}

TEST(ScheduleCsv, IgnoresTrailingBlankLines) {
  const ImportedSchedule expected = read_schedule_csv("0F0,0B0\n", "s", "s.csv");
  for (const std::string_view blank : {"\n", "\n\n", "\r\n", " \n", ",,\n"}) {
    const std::string text = "0F0,0B0\n" + std::string(blank);
    EXPECT_EQ(read_schedule_csv(text, "s", "s.csv").schedule, expected.schedule);
  }
}

// Rows stand for devices: every device has to run a stage.
TEST(ScheduleCsv, RejectsADeviceWithoutActions) {
  const std::string hint = "  hint: write one row per device, without blank lines\n";
  EXPECT_EQ(message_of("0F0,0B0\n\n1F0,1B0\n"), "error: s.csv:2: device 1 has no actions\n" + hint);
  EXPECT_EQ(message_of("\n0F0,0B0\n"), "error: s.csv:1: device 0 has no actions\n" + hint);
  EXPECT_EQ(message_of("0F0,0B0\n0SEND_F0\n"), "error: s.csv:2: device 1 has no actions\n" + hint);
}

TEST(ScheduleCsv, ErrorsNameLineCellAndWhatWouldBeRight) {
  EXPECT_EQ(message_of("0F0,0B0\n1F0,x\n"),
            "error: s.csv:2, cell 2: invalid action 'x'\n  hint: write stage, type, micro-batch, "
            "such as 0F12, or a pair such as (0F4;7B0)OVERLAP_F_B\n");
  EXPECT_EQ(message_of("0F0,0RECVF0"),
            "error: s.csv:1, cell 2: unknown type 'RECVF' in '0RECVF0'\n  hint: did you mean "
            "'RECV_F', 'RECV_B'?\n");
  EXPECT_EQ(message_of("0F0,0B0\n0F1"),
            "error: s.csv:2, cell 1: stage 0 occurs on device 0 and on device 1\n  hint: put all "
            "actions of a stage into one row\n");
  EXPECT_EQ(message_of("0F0,2F0"),
            "error: s.csv: stage 1 is missing, but stage 2 occurs\n  hint: number stages 0, 1, 2, "
            "...\n");
  EXPECT_EQ(
      message_of("0F0,0B"),
      "error: s.csv:1, cell 2: missing micro-batch in '0B'\n  hint: write 0B0 for micro-batch "
      "0\n");
  EXPECT_EQ(message_of("(0F0;0B0)"),
            "error: s.csv:1, cell 1: invalid pair '(0F0;0B0)'\n  hint: write a pair as "
            "(0F4;7B0)OVERLAP_F_B\n");
  EXPECT_EQ(message_of("0F99999999"),
            "error: s.csv:1, cell 1: micro-batch 99999999 is out of range: expected 0 to 1048575\n"
            "  hint: number micro-batches from 0\n");
  EXPECT_EQ(message_of(""),
            "error: s.csv: no actions found\n  hint: write one row per device, such as "
            "0F0,0F1,0B0,0B1\n");
}

TEST(ScheduleCsv, RefusesWhatTheFormatCannotSay) {
  EXPECT_THROW(write_schedule_csv(find_schedule_rule("dualpipe")->generate(request_of(4, 1, 8))),
               InputError);
  ScheduleRequest sliced = request_of(2, 1, 2);
  sliced.slices = 2;
  EXPECT_THROW(write_schedule_csv(find_schedule_rule("seq1f1b")->generate(sliced)), InputError);
}

}  // namespace
}  // namespace meshwright

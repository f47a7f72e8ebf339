#include "cli/sweep/points_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/formats/file.hpp"
#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// tp 8 does not divide the 12 heads of gpt2, and 8 x 2 ranks are more than 8.
SweepFlags flags_of_gpt2() {
  SweepFlags flags;
  flags.sources.model = "gpt2";
  flags.sources.cluster = "dgx-a100";
  flags.gpus = 8;
  flags.over = {"tp=1,2,8", "pp=1,2"};
  flags.strategy.global_batch = 16;
  flags.strategy.sequence_length = 1024;
  return flags;
}

/// The study with all points evaluated.
SweepStudy evaluated_study() {
  SweepStudy study = load_study(flags_of_gpt2());
  const std::vector<std::size_t> missing = missing_points(study);
  evaluate_points(study, missing, {.on_point = [&](std::size_t i, SweepPoint point) {
                    study.points[i] = std::move(point);
                  }});
  return study;
}

std::string message_of(const std::string& line, SweepStudy& study) {
  try {
    take_line(line, "here", key_of(study), study);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PointLine, GivesBackExactlyThePoint) {
  const SweepStudy study = evaluated_study();
  SweepStudy read = load_study(flags_of_gpt2());
  for (std::size_t i = 0; i < study.points.size(); ++i) {
    const std::string line = line_of(key_of(study), i, study.points[i]);
    ASSERT_EQ(take_line(line, "here", key_of(read), read), i);
    EXPECT_EQ(read.points[i].figures, study.points[i].figures);  // to the picosecond
    EXPECT_EQ(read.points[i].problems, study.points[i].problems);
    EXPECT_FALSE(read.points[i].has_failed);
  }
  ASSERT_TRUE(study.points[0].figures.has_value());
  EXPECT_NE(study.points[0].figures->step_time.value % kTicksPerNanosecond, 0)
      << "the test must notice rounding";
  EXPECT_FALSE(study.points[4].figures.has_value());
}

TEST(PointLine, KeepsThatAPointHasFailed) {
  SweepStudy study = load_study(flags_of_gpt2());
  SweepPoint failed;
  failed.problems = {{"internal error", "a \"quoted\" cause", ""}};
  failed.has_failed = true;
  take_line(line_of(key_of(study), 3, failed), "here", key_of(study), study);
  EXPECT_TRUE(study.points[3].has_failed);
  EXPECT_EQ(study.points[3].problems, failed.problems);
}

TEST(PointLine, SaysWhatIsWrong) {
  SweepStudy study = load_study(flags_of_gpt2());
  const std::string start = R"({"sweep":")" + key_of(study) + R"(","point":)";
  EXPECT_THAT(message_of(R"({"sweep":"0123456789abcdef","point":0})", study),
              HasSubstr("here: belongs to another sweep"));
  EXPECT_THAT(message_of(start + "6,\"problems\":[]}", study),
              HasSubstr("here#/point: 6 is out of range: expected 0 to 5"));
  EXPECT_THAT(message_of(start + "0}", study),
              HasSubstr("here#/plan: expected either a plan or problems"));
  EXPECT_THAT(message_of(start + "0,\"plan\":{}}", study),
              HasSubstr("here#/plan: missing key 'strategy'"));
  EXPECT_THAT(message_of("{", study), HasSubstr("here:1:1: invalid JSON"));
  for (const SweepPoint& point : study.points) EXPECT_FALSE(point.figures.has_value());
}

TEST(SweepKey, DependsOnAllThatPredictionsDependOn) {
  const std::string key = key_of(load_study(flags_of_gpt2()));
  EXPECT_EQ(key_of(load_study(flags_of_gpt2())), key);
  const auto key_with = [](void (*change)(SweepFlags&)) {
    SweepFlags flags = flags_of_gpt2();
    change(flags);
    return key_of(load_study(flags));
  };
  EXPECT_NE(key_with([](SweepFlags& f) { f.sources.model = "gpt2-medium"; }), key);
  EXPECT_NE(key_with([](SweepFlags& f) { f.sources.cluster = "dgx-h100"; }), key);
  EXPECT_NE(key_with([](SweepFlags& f) { f.sources.trainer = "torchtitan"; }), key);
  EXPECT_NE(key_with([](SweepFlags& f) { f.strategy.sequence_length = 512; }), key);
  EXPECT_NE(key_with([](SweepFlags& f) { f.over = {"pp=1,2", "tp=1,2,8"}; }), key);
  EXPECT_EQ(key_with([](SweepFlags& f) { f.show = "mfu"; }), key);
  EXPECT_EQ(key_with([](SweepFlags& f) { f.threads = 1; }), key);
}

class PointsFileTest : public ProgramTest {
 protected:
  const std::string file_ = path("points");
  SweepStudy study_ = load_study(flags_of_gpt2());
};

TEST_F(PointsFileTest, DropsAnUnfinishedLastLine) {
  const SweepStudy all = evaluated_study();
  const std::string key = key_of(all);
  const std::string whole = line_of(key, 1, all.points[1]) + "\n";
  const std::string torn = line_of(key, 2, all.points[2]);
  write_file(file_, whole + torn.substr(0, torn.size() / 2));
  PointsFile points(file_, key);
  EXPECT_EQ(points.read_into(study_), 1U);
  EXPECT_EQ(read_file(file_), whole);
  EXPECT_THAT(missing_points(study_), ElementsAre(0, 2, 3, 4)) << "point 5 is invalid";
  points.append(2, all.points[2]);
  EXPECT_EQ(read_file(file_), whole + torn + "\n");
}

TEST_F(PointsFileTest, TriesFailedPointsAgain) {
  SweepPoint failed;
  failed.problems = {{"this machine", "out of memory", ""}};
  failed.has_failed = true;
  PointsFile points(file_, key_of(study_));
  points.append(0, failed);
  EXPECT_FALSE(std::ifstream(file_).good());
}

TEST_F(PointsFileTest, NamesTheLineThatIsInvalid) {
  const SweepStudy all = evaluated_study();
  write_file(file_, line_of(key_of(all), 1, all.points[1]) + "\n[]\n");
  try {
    PointsFile(file_, key_of(study_)).read_into(study_);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(file_ + ":2"));
  }
}

TEST(SweepPart, TakesEveryNthPoint) {
  const SweepStudy study = load_study(flags_of_gpt2());
  EXPECT_THAT(missing_points(study, sweep_part_from_text("1/4")), ElementsAre(0, 4));
  EXPECT_THAT(missing_points(study, sweep_part_from_text("3/4")), ElementsAre(2));
  EXPECT_THAT(missing_points(study, sweep_part_from_text("7/9")), ElementsAre());
  for (const char* text : {"", "1", "0/4", "5/4", "1/0", "a/4", "1/4x", "-1/4", "1/100001"})
    EXPECT_THROW(sweep_part_from_text(text), UsageError) << text;
}

class SweepFiles : public ProgramTest {
 protected:
  ProgramRun sweep(const std::string& more) const {
    return run(
        words_of("sweep --model gpt2 --cluster dgx-a100 --gpus 8 --seq 1024 "
                 "--global-batch 16 --over tp=1,2,8 --over pp=1,2 " +
                 more));
  }
};

TEST_F(SweepFiles, PartsGiveTheResultOfOneProcess) {
  const ProgramRun alone = sweep("--json");
  std::string lines;
  for (const char* part : {"3/3", "1/3", "2/3"}) {
    const ProgramRun run = sweep(std::string("--part ") + part);
    ASSERT_EQ(run.exit_code, 0) << run.standard_error;
    lines += run.standard_output;
  }
  EXPECT_EQ(std::ranges::count(lines, '\n'), 6);
  write_file(path("all.points"), lines);
  const ProgramRun merged = sweep("--json --points all.points");
  EXPECT_EQ(merged.standard_output, alone.standard_output);
  EXPECT_EQ(merged.standard_error, "");
  EXPECT_EQ(read_file(path("all.points")), lines);
}

/// The step time of the file appears in the result, so the point was not evaluated again.
TEST_F(SweepFiles, ContinuesFromTheFileNextToTheOutput) {
  std::string line = sweep("--part 1/6").standard_output;
  const std::string key = "\"step_time_ps\":";
  const std::size_t begin = line.find(key) + key.size();
  line.replace(begin, line.find(',', begin) - begin, "7000000000000");
  write_file(path("out.csv.points"), line);
  const ProgramRun run = sweep("-o out.csv");
  ASSERT_EQ(run.exit_code, 0) << run.standard_error;
  EXPECT_EQ(run.standard_error, "continuing: out.csv.points has 1 of 6 combinations\n");
  EXPECT_THAT(read_file(path("out.csv")), HasSubstr("\n1,1,7,"));
  EXPECT_THAT(folder_.file_names(), ElementsAre("out.csv"));
}

TEST_F(SweepFiles, RefusesPointsOfAnotherSweep) {
  write_file(path("out.csv.points"), sweep("--part 1/6").standard_output);
  EXPECT_THAT(sweep("--zero 1 -o out.csv"),
              fails_with(3,
                         "error: out.csv.points:1: belongs to another sweep: its options, input "
                         "files or version differ\n"
                         "  hint: remove the file, or write the results to another one\n"));
  EXPECT_THAT(folder_.file_names(), ElementsAre("out.csv.points"));
}

TEST_F(SweepFiles, CannotBeStandardInput) {
  EXPECT_THAT(sweep("--points -"), fails_with(2, "error: --points: cannot be a standard stream\n"));
}

TEST_F(SweepFiles, SayWhenTheyCannotBeWritten) {
  EXPECT_THAT(sweep("-o none/out.csv"),
              fails_with(4, "error: none/out.csv.points: cannot write file: No such file"));
}

}  // namespace
}  // namespace meshwright

#include "gui/session/scenario.hpp"

#include <gtest/gtest.h>

#include "core/timeline/timeline_of.hpp"
#include "gui/session/simulation.hpp"
#include "gui/session/state_text.hpp"

namespace meshwright::gui {
namespace {

TEST(Scenario, KeepsItsMicrobatchesWhenReplicasChange) {
  Scenario s = default_scenario();
  set_microbatches(s, 24);
  set_data_degree(s, 4);
  EXPECT_EQ(microbatches(s), 24);
  EXPECT_EQ(s.strategy.global_batch, 96);
  set_micro_batch(s, 2);
  EXPECT_EQ(microbatches(s), 24);
  EXPECT_EQ(s.strategy.global_batch, 192);
}

// 2 x 20 + 2 x 4 = 48 micro-batches; equal ranks have 20 each.
TEST(Scenario, SharesTheBatchEquallyWhenItChanges) {
  Scenario s = default_scenario();
  set_data_degree(s, 4);
  s.strategy.batch_shares = *batch_shares_from_text("0-1:20+2-3:4");
  s.strategy.global_batch = 48;
  EXPECT_EQ(microbatches(s), 20);
  set_micro_batch(s, 2);
  EXPECT_TRUE(s.strategy.batch_shares.empty());
  EXPECT_EQ(s.strategy.global_batch, 160);
}

TEST(Scenario, AdoptsTheChunksRequiredByASchedule) {
  Scenario s = default_scenario();
  set_schedule(s, "zb-v");
  EXPECT_EQ(s.strategy.degrees.chunks, 2);
  set_schedule(s, "1f1b");
  EXPECT_EQ(s.strategy.degrees.chunks, 1);
}

TEST(Scenario, DropsManualEditsForAnotherStageCount) {
  Scenario s = default_scenario();
  set_slowness(s, 3, 1.5);
  ASSERT_EQ(s.what_if.slowness.size(), 8u);
  set_pipeline_degree(s, 4);
  EXPECT_TRUE(s.what_if.slowness.empty());
}

TEST(Scenario, MatchesPricedTimesAfterResettingEveryPipelineRank) {
  Scenario s = default_scenario();
  set_slowness(s, 3, 1.5);
  set_slowness(s, 3, 1);
  EXPECT_EQ(s, default_scenario());
}

TEST(StateText, RoundTripsEveryExample) {
  for (const Example& example : example_scenarios()) {
    const std::string text = to_state_text(example.scenario);
    EXPECT_EQ(scenario_from_state_text(text), example.scenario) << text;
  }
}

TEST(StateText, KeepsSwitchesThatAreOffByHand) {
  Scenario s = default_scenario();
  s.strategy.zero = 3;
  s.strategy.data_parallelism.reshard_after_forward = false;
  s.strategy.data_parallelism.overlap_gather = true;
  EXPECT_EQ(scenario_from_state_text(to_state_text(s)), s);
}

// 64 GPUs over 8 · 4 ranks of a replica: 2 replicas.
TEST(StateText, ReadsTheLinesOfTheReadme) {
  const Scenario s = scenario_from_state_text(
      "$ meshwright simulate --model llama-3.1-70b --cluster dgx-h100 --gpus 64 --tp 8 --pp 4 "
      "--zero 1 \\\n    --sequence-parallel --global-batch 128 --seq 8192 -o best.pftrace");
  EXPECT_EQ(s.strategy.degrees.data, 2);
  EXPECT_EQ(s.strategy.degrees.tensor, 8);
  EXPECT_TRUE(s.strategy.sequence_parallel);
  EXPECT_THROW((void)scenario_from_state_text("--model gpt2 --cluster dgx-a100 --gpus 12 --tp 8 "
                                              "--global-batch 8 --seq 128"),
               InputError);
}

TEST(StateText, RejectsUnknownWords) {
  for (const char* text :
       {"", "rm -rf /", "--model gpt2", "--model gpt2 --cluster nowhere --global-batch 1 --seq 1",
        "--model gpt2 --cluster dgx-a100 --global-batch 8 --seq 128 --pp x",
        "--model gpt2 --cluster dgx-a100 --global-batch 8 --seq 128 --ppp 2",
        "--model gpt2 --cluster dgx-a100 --global-batch 8 --seq 128 # tF=ten",
        "--model gpt2 --cluster dgx-a100 --global-batch 8 --seq 128 # slow=1,0"})
    EXPECT_THROW((void)scenario_from_state_text(text), InputError) << text;
}

// p = 4, m = 8, equal stages, free messages: 3 / 11 (Narayanan et al., arXiv:2104.04473, 2.2.1).
TEST(SimulatedScenario, MatchesTheFormulaOfTheTextbookExample) {
  JobLibrary library;
  const auto s = simulate_scenario(example_scenarios().front().scenario, library);
  ASSERT_TRUE(s->is_sound());
  ASSERT_TRUE(s->formula);
  EXPECT_TRUE(s->formula->broken.empty());
  EXPECT_DOUBLE_EQ(s->formula->bubble, 3.0 / 11);
  EXPECT_DOUBLE_EQ(s->evaluation.bubble_of_makespan, 3.0 / 11);
}

// Eight micro-batches of 30 ms and three passes forth and back: 330 ms. The model fits.
TEST(SimulatedScenario, ShowsNothingButThePipelineOfTheTextbookExample) {
  JobLibrary library;
  const auto s = simulate_scenario(example_scenarios().front().scenario, library);
  ASSERT_TRUE(s->is_sound());
  EXPECT_EQ(s->evaluation.pipeline_makespan, Ticks(330 * (kTicksPerSecond / 1000)));
  EXPECT_EQ(step_shares(s->evaluation).optimizer, 0);
  EXPECT_LE(s->figures.peak_memory, s->figures.memory_capacity);
}

// Every closed form equals the simulation if all its assumptions hold.
TEST(SimulatedScenario, MatchesEveryFormulaWhoseAssumptionsHold) {
  JobLibrary library;
  int met = 0;
  for (const char* schedule :
       {"naive", "gpipe", "1f1b", "interleaved-1f1b", "breadth-first", "zb-h1", "zb-h2"})
    for (const int p : {2, 4, 8})
      for (const int m : {8, 16}) {
        Scenario s = example_scenarios().front().scenario;
        s.strategy.degrees.pipeline = p;
        set_microbatches(s, m);
        set_schedule(s, schedule);
        const auto simulation = simulate_scenario(s, library);
        ASSERT_TRUE(simulation->is_sound()) << schedule << " " << p << " " << m;
        ASSERT_TRUE(simulation->formula);
        if (!simulation->formula->broken.empty()) continue;
        ++met;
        EXPECT_NEAR(simulation->formula->bubble, simulation->evaluation.bubble_of_makespan, 1e-12)
            << schedule << " p " << p << " m " << m;
      }
  EXPECT_GE(met, 35);
}

TEST(SimulatedScenario, IsNeverShorterThanItsBound) {
  JobLibrary library;
  int bounded = 0;
  for (const ScheduleRule& rule : schedule_rules()) {
    Scenario s = default_scenario();
    set_schedule(s, std::string(rule.name));
    const auto simulation = simulate_scenario(s, library);
    if (!simulation->is_sound() || !simulation->bounds) continue;
    ++bounded;
    EXPECT_GE(simulation->evaluation.pipeline_makespan, simulation->bounds->makespan) << rule.name;
    EXPECT_GE(simulation->evaluation.period, simulation->bounds->period) << rule.name;
  }
  EXPECT_GE(bounded, 12);
}

TEST(SimulatedScenario, ReportsProblems) {
  JobLibrary library;
  Scenario s = default_scenario();
  set_tensor_degree(s, 5);
  const auto simulation = simulate_scenario(s, library);
  ASSERT_FALSE(simulation->is_sound());
  EXPECT_EQ(simulation->problems.front().where, "--tp");
  EXPECT_EQ(simulation->tracks, nullptr);
}

/// A scenario with every kind of task: passes, messages, collectives, the optimizer.
Scenario with_collectives() {
  Scenario s = default_scenario();
  set_pipeline_degree(s, 4);
  set_tensor_degree(s, 2);
  set_data_degree(s, 2);
  s.strategy.zero = 2;
  set_microbatches(s, 12);
  return s;
}

// Labels built from the graph match the names of a timeline.
TEST(SimulatedScenario, EqualsTheTimelineBuiltWithNames) {
  JobLibrary library;
  const auto s = simulate_scenario(with_collectives(), library);
  ASSERT_TRUE(s->is_sound()) << s->problems.front().what;
  const Timeline named = timeline_of(s->step.graph, s->step.times);
  const TimelineTracks wanted = timeline_tracks_of(named);
  ASSERT_EQ(s->tracks->slice_count(), wanted.slice_count());
  EXPECT_EQ(s->tracks->start_ns, wanted.start_ns);
  EXPECT_EQ(s->tracks->duration_ns, wanted.duration_ns);
  EXPECT_EQ(s->tracks->arrows, wanted.arrows);
  EXPECT_EQ(s->tracks->memory, wanted.memory);
  std::size_t collectives = 0;
  for (std::size_t slice = 0; slice < wanted.slice_count(); ++slice) {
    ASSERT_EQ(full_name(*s->tracks, slice), full_name(wanted, slice));
    collectives += named.spans[slice].kind == TaskKind::kCollective;
  }
  EXPECT_GT(collectives, 0U);
}

TEST(SimulatedScenario, RejectsManualPassTimesWithSplitPasses) {
  JobLibrary library;
  Scenario s = example_scenarios().front().scenario;
  set_data_degree(s, 2);
  s.strategy.zero = 3;
  const auto simulation = simulate_scenario(s, library);
  ASSERT_FALSE(simulation->is_sound());
  EXPECT_EQ(simulation->problems.front().where, "--zero");
}

}  // namespace
}  // namespace meshwright::gui

// The list of lowering passes: how passes are checked and reported.
#include "core/lowering/lowering_pass.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/lowering/lowering_context.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

/// Lets the first task wait for the last one.
void close_a_cycle(LoweringContext& context) {
  TaskGraph& graph = context.graph();
  graph.dependencies.insert(graph.dependencies.begin(), TaskId(graph.tasks.size() - 1));
  for (std::size_t i = 1; i < graph.dependency_begin.size(); ++i) ++graph.dependency_begin[i];
}

TEST(LoweringPasses, NameTheFirstPassAfterWhichTheGraphIsInvalid) {
  const Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 4);
  const ModelGraph model = gpt({.blocks = 4});
  const Cluster cluster = cluster_of(1, 4);
  LoweringContext context(plan, model, cluster, {.check_each_pass = true});
  run_passes(lowering_passes(), context);
  constexpr std::array kBroken{LoweringPass{"closes a cycle", close_a_cycle},
                               LoweringPass{"comes too late", [](LoweringContext&) {}}};
  try {
    run_passes(kBroken, context);
    FAIL() << "the graph is cyclic";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(),
                 "after lowering pass 'closes a cycle': task 0 depends on task 19, which is not an "
                 "earlier task");
  }
}

std::vector<FigureChange> changes_of(const std::vector<PassReport>& reports,
                                     std::string_view pass) {
  const auto found = std::find_if(reports.begin(), reports.end(),
                                  [&](const PassReport& report) { return report.pass == pass; });
  return found == reports.end() ? std::vector<FigureChange>{{"no such pass", 0, 0}}
                                : found->changes;
}

// Two stages and two micro-batches: 8 passes; 2 activations and 2 gradients are sent and received
// (8 tasks). A send, and the pass after a receive, wait for one task: 8 dependencies. At the end a
// norm over 2 ranks and 2 updates, each waiting for one task.
TEST(LoweringPasses, ReportWhatTheyChange) {
  const Plan plan = plan_of(strategy_of({.pipeline = 2}, 2), 4);
  const std::vector<PassReport> reports =
      report_lowering(plan, gpt({.blocks = 4}), cluster_of(1, 4));
  ASSERT_EQ(reports.size(), lowering_passes().size());
  const auto tasks_of = [&](std::string_view pass) {
    std::vector<FigureChange> changes = changes_of(reports, pass);
    std::erase_if(changes, [](const FigureChange& change) {
      return change.name != "tasks" && change.name != "dependencies" &&
             change.name != "collectives" && change.name != "no such pass";
    });
    return changes;
  };
  EXPECT_THAT(changes_of(reports, "stages"), ElementsAre(FigureChange{"stages", 0, 2}));
  EXPECT_THAT(changes_of(reports, "recompute"), IsEmpty());
  EXPECT_THAT(tasks_of("works"), IsEmpty());
  EXPECT_THAT(tasks_of("pipeline"),
              ElementsAre(FigureChange{"tasks", 0, 16}, FigureChange{"dependencies", 0, 8}));
  EXPECT_THAT(changes_of(reports, "parameter servers"), IsEmpty());
  EXPECT_THAT(changes_of(reports, "gradients"), IsEmpty());
  EXPECT_THAT(tasks_of("optimizer"),
              ElementsAre(FigureChange{"tasks", 16, 20}, FigureChange{"dependencies", 8, 12},
                          FigureChange{"collectives", 0, 1}));
  EXPECT_THAT(changes_of(reports, "all ranks"), IsEmpty());
}

}  // namespace
}  // namespace meshwright

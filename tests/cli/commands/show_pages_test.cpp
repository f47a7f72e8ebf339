#include "cli/commands/show_pages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "cli/reports/report.hpp"
#include "core/schedule/schedule.hpp"
#include "models/load/load.hpp"
#include "tests/golden.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// True if one of the lines is `name`, indented by two spaces, and `value` at least two spaces
/// after it.
bool lists(const std::string& page, const std::string& name, const std::string& value) {
  for (const std::string& line : lines_of(page)) {
    const std::string begin = "  " + name + "  ";
    if (!line.starts_with(begin) || !line.ends_with(value)) continue;
    const std::string between =
        line.substr(begin.size(), line.size() - begin.size() - value.size());
    if (between.find_first_not_of(' ') == std::string::npos) return true;
  }
  return false;
}

// The longest keys have more than 40 characters: devices.h100.memory_efficiency.half_speed_bytes.
TEST(ShowCluster, SeparatesEveryFigureFromItsSource) {
  for (const std::string& name : cluster_preset_names()) {
    const Cluster cluster = cluster_from_toml(find_cluster(name));
    const std::string page = to_text(cluster_page(find_cluster(name)).text);
    ASSERT_FALSE(cluster.sources.empty()) << name;
    for (const auto& [figure, source] : cluster.sources)
      EXPECT_TRUE(lists(page, figure, source)) << name << ": " << figure << "\n" << page;
  }
}

TEST(ShowCluster, ListsItsProperties) {
  const std::string page = to_text(cluster_page(find_cluster("dgx-h100")).text);
  EXPECT_TRUE(lists(page, "nodes", "3072 x DGX H100, 8 x H100-SXM5-80GB each")) << page;
  EXPECT_TRUE(lists(page, "inter-node", "8 ports x 50 GB/s per node, latency 10 us")) << page;
}

TEST(ShowModel, ListsItsProperties) {
  for (const std::string& name : model_preset_names()) {
    const std::string page = to_text(model_page(find_model(name)).text);
    const ModelGraph model = model_from_config(find_model(name));
    EXPECT_TRUE(lists(page, "parameters", grouped(parameter_count(model)))) << page;
    EXPECT_TRUE(lists(page, "embeddings", model.tied_embeddings ? "tied" : "untied")) << page;
  }
}

// GPT-2 on 2 x 2 ranks with ZeRO 1 and full recomputation; each of 2 stages runs F and B
// of 4 micro-batches, 16 actions. Every pass has one line.
TEST(ShowLowering, PrintsOneLinePerPass) {
  Plan plan;
  plan.strategy.degrees.pipeline = 2;
  plan.strategy.degrees.data = 2;
  plan.strategy.global_batch = 8;
  plan.strategy.sequence_length = 1024;
  plan.strategy.zero = 1;
  plan.strategy.recompute.kind = RecomputeKind::kFull;
  plan.blocks_per_stage = {6, 6};
  const Page page = lowering_page(report_lowering(plan, model_from_config(find_model("gpt2")),
                                                  cluster_from_toml(find_cluster("dgx-a100")),
                                                  {.programs = true}));
  expect_golden(to_text(page.text), "show-lowering.txt");
  EXPECT_THAT(page.json, HasSubstr(R"("pass": "parameter servers",
      "changes": [])"));
}

TEST(ShowSchedule, SeparatesDevicesFromTheirOrders) {
  const ScheduleRule& rule = *find_schedule_rule("1f1b");
  const std::string page = to_text(schedule_page(rule).text);
  EXPECT_THAT(page, HasSubstr("\n     3  3F0 3B0 3F1 3B1 "));
  EXPECT_TRUE(lists(page, "source", std::string(rule.source))) << page;
}

// Every name begins a line of its list, followed by at least two spaces.
TEST(ShowLists, SeparateNamesFromTheNextColumn) {
  const auto expect_rows = [](const Page& page, const std::vector<std::string>& names) {
    const std::vector<std::string> lines = lines_of(to_text(page.text));
    ASSERT_EQ(lines.size(), names.size() + 1);
    for (const std::string& name : names)
      EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                              [&](const auto& line) { return line.starts_with(name + "  "); }),
                1)
          << name;
  };
  expect_rows(models_page(), model_preset_names());
  expect_rows(clusters_page(), cluster_preset_names());
  expect_rows(devices_page(), device_preset_names());
  expect_rows(schedules_page(), schedule_names());
}

}  // namespace
}  // namespace meshwright

/// The page about the lowering passes of a plan.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands/show_pages.hpp"
#include "cli/job/job.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/error.hpp"

namespace meshwright {
namespace {

std::string text_of(const PassReport& report) {
  std::string text;
  for (const FigureChange& change : report.changes)
    text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", change.name,
                        grouped(change.before), grouped(change.after));
  return text.empty() ? "no change" : text;
}

}  // namespace

Page lowering_page(const std::vector<PassReport>& reports) {
  std::vector<NamedValue> lines;
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  for (const PassReport& report : reports) {
    lines.push_back({std::string(report.pass), text_of(report)});
    nlohmann::ordered_json changes = nlohmann::ordered_json::array();
    for (const FigureChange& change : report.changes)
      changes.push_back(
          {{"figure", change.name}, {"before", change.before}, {"after", change.after}});
    passes.push_back({{"pass", report.pass}, {"changes", changes}});
  }
  constexpr int kIndent = 2;
  const nlohmann::ordered_json json{{"schema", 1}, {"passes", passes}};
  return {
      fmt::format("{} lowering passes, one representative per pipeline rank\n", reports.size()) +
          Document(std::move(lines)),
      json.dump(kIndent) + "\n"};
}

Page lowering_page(const std::string& plan_path) {
  if (plan_path != "-" && !std::filesystem::is_regular_file(plan_path))
    throw InputError({.where = plan_path,
                      .what = "not a plan file",
                      .hint = "'--lowering' takes a plan file, as 'meshwright plan -o' writes it"});
  JobFlags flags;
  flags.plan_file = plan_path;
  const Job job = load_job(flags);
  return lowering_page(report_lowering(job.file.plan, job.model, job.cluster,
                                       {.memory = job.cost_model->memory(), .programs = true}));
}

}  // namespace meshwright

#include "cli/partition/partition_step.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/partition/report_json.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/timeline/timeline_of.hpp"
#include "planner/partition/graph_plan.hpp"

namespace meshwright {

std::optional<Prediction> partition_step(const PricedModel& model,
                                         const PricedKernelGraph<ReplicationProblem>& priced,
                                         const TrainingPartition& partition) {
  if (simulated_passes(partition) > kMostSimulatedPasses) return {};
  return predict_partition({model.graph, priced, partition, model.cluster, model.devices.reserved},
                           *model.cost);
}

Document step_text(const Prediction& step, int microbatches) {
  const Evaluation& e = step.evaluation;
  const std::size_t fullest = fullest_rank(e);
  Document text(std::vector<NamedValue>{
      {"step time",
       fmt::format("{} for {}, simulated", to_text(e.step_time),
                   count_text(static_cast<std::size_t>(microbatches), "micro-batch", "es"))},
      {"utilization", fmt::format("MFU {}, HFU {}", percent(e.mfu), percent(e.hfu))},
      {"bubble", fmt::format("{} of the period (busiest rank {})", percent(e.bubble_of_period),
                             percent(e.busiest_rank_bubble))},
      {"peak memory", fmt::format("{} of {}", to_text(total(e.peak_memory[fullest])),
                                  to_text(memory_capacity_of(e, fullest)))}});
  return "\n" + text + "\n" + breakdown_table(step.graph.ranks, e);
}

std::string with_step(const std::string& json, const std::optional<Prediction>& step) {
  Json object = Json::parse(json);
  if (!step) {
    object["step"] = nullptr;
    return json_text(object);
  }
  const Evaluation& e = step->evaluation;
  object["step"] = {{"step_ns", to_nanoseconds(e.step_time)},
                    {"bubble_of_period", e.bubble_of_period},
                    {"busiest_rank_bubble", e.busiest_rank_bubble},
                    {"mfu", e.mfu},
                    {"hfu", e.hfu},
                    {"peak_memory_bytes", total(e.peak_memory[fullest_rank(e)]).value}};
  object["step"].update(Json::parse(ranks_json(step->graph.ranks, e)));
  return json_text(object);
}

Timeline timeline_of(const Prediction& step, const PricedModel& model, const std::string& name) {
  Timeline timeline = timeline_of(step.graph, step.times);
  timeline.provenance["program"] = "meshwright " MESHWRIGHT_VERSION;
  timeline.provenance["model"] = name;
  timeline.provenance["cluster"] = model.cluster.name;
  timeline.provenance["cost model"] = model.cost->provenance();
  return timeline;
}

}  // namespace meshwright

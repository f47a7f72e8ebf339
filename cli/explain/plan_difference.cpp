#include "cli/explain/plan_difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/explain/explanation.hpp"
#include "cli/job/job_error.hpp"
#include "cli/terminal/document.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

using DifferenceJson = nlohmann::ordered_json;

// ---- choices ------------------------------------------------------------------------------------

/// "2 2 1 1"; beyond eight stages "1 to 2".
std::string blocks_text(const std::vector<int>& blocks) {
  constexpr std::size_t kMostShown = 8;
  if (blocks.size() <= kMostShown) return fmt::format("{}", fmt::join(blocks, " "));
  const auto [least, most] = std::ranges::minmax(blocks);
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

std::string choice_text(const DifferenceJson& strategy, const std::string& key) {
  const auto value = strategy.find(key);
  if (value == strategy.end()) return "default";
  if (value->is_boolean()) return value->get<bool>() ? "yes" : "no";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

/// Names of things that differ; the same name twice is not the same thing.
void add_source(const std::string& what, const std::string& name_a, const std::string& name_b,
                bool is_equal, std::vector<DifferingChoice>& choices) {
  if (is_equal) return;
  choices.push_back({what, name_a, name_a == name_b ? name_b + " (changed)" : name_b});
}

std::vector<DifferingChoice> differing_choices(const PlanFile& a, const PlanFile& b) {
  std::vector<DifferingChoice> choices;
  add_source("model", a.model_name, b.model_name, a.model_config == b.model_config, choices);
  add_source("cluster", a.cluster_name, b.cluster_name, a.cluster_toml == b.cluster_toml, choices);
  add_source("trainer", a.trainer_name, b.trainer_name, a.trainer_toml == b.trainer_toml, choices);
  add_source("calibration", a.calibration.empty() ? "none" : "measured",
             b.calibration.empty() ? "none" : "measured", a.calibration == b.calibration, choices);
  const auto of_a = DifferenceJson::parse(to_json(a.plan.strategy)),
             of_b = DifferenceJson::parse(to_json(b.plan.strategy));
  DifferenceJson keys = of_a;
  keys.update(of_b);
  for (const auto& [key, ignored] : keys.items()) {
    const std::string text_a = choice_text(of_a, key), text_b = choice_text(of_b, key);
    if (text_a == text_b) continue;
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    choices.push_back({std::move(name), text_a, text_b});
  }
  if (a.plan.blocks_per_stage != b.plan.blocks_per_stage)
    choices.push_back({"layers per stage", blocks_text(a.plan.blocks_per_stage),
                       blocks_text(b.plan.blocks_per_stage)});
  if (a.plan.device_of_stage != b.plan.device_of_stage)
    choices.push_back({"stage placement", a.plan.device_of_stage.empty() ? "schedule" : "manual",
                       b.plan.device_of_stage.empty() ? "schedule" : "manual"});
  if (a.plan.orders != b.plan.orders)
    choices.push_back({"order of passes", a.plan.orders.empty() ? "schedule" : "synthesized",
                       b.plan.orders.empty() ? "schedule" : "synthesized"});
  return choices;
}

ComparedPlan predicted_plan(const Job& job) {
  TrainingJob training = training_job(job);
  training.checkpoint = stop_if_interrupted;
  Prediction prediction = predict(training);
  ComparedPlan plan;
  plan.job = &job;
  plan.figures = figures_of(job.file.plan.strategy, prediction.evaluation, "");
  plan.figures.range = range_of(plan.figures.step_time, prediction.error_bar);
  plan.fullest_pipeline_rank =
      prediction.graph.ranks[fullest_rank(prediction.evaluation)].coordinate.pipeline;
  plan.evaluation = std::move(prediction.evaluation);
  return plan;
}

std::int64_t tokens_per_step(const ComparedPlan& plan) {
  return plan.figures.strategy.global_batch * plan.figures.strategy.sequence_length;
}

std::int64_t gpus_of(const ComparedPlan& plan) { return rank_count(plan.figures.strategy.degrees); }

double tokens_per_second(const ComparedPlan& plan) {
  return static_cast<double>(tokens_per_step(plan)) / to_seconds(plan.figures.step_time).value;
}

bool is_faster_by_step(const PlanDifference& d) {
  return tokens_per_step(d.a) == tokens_per_step(d.b);
}

/// Tokens per second of B over those of A.
double speedup_of_b(const PlanDifference& d) {
  if (is_faster_by_step(d)) return ratio(d.a.figures.step_time, d.b.figures.step_time);
  return tokens_per_second(d.b) / tokens_per_second(d.a);
}

// ---- text ---------------------------------------------------------------------------------------

/// Times with three decimals of one unit, so that rows of a table can be added up by eye.
class FixedTimes {
 public:
  explicit FixedTimes(Ticks largest) {
    for (const Unit& unit : {Unit{"s", kTicksPerSecond}, Unit{"ms", kTicksPerSecond / 1000}}) {
      unit_ = unit;
      if (largest.value >= unit.ticks) return;
    }
    unit_ = {"us", kTicksPerSecond / 1'000'000};
  }
  std::string text(Ticks time) const { return fmt::format("{:.3f} {}", in_unit(time), unit_.name); }
  bool is_visible(Ticks time) const { return text(time) != text(Ticks()); }
  std::string change(Ticks time) const {
    return !is_visible(time) ? "0" : fmt::format("{:+.3f} {}", in_unit(time), unit_.name);
  }

 private:
  struct Unit {
    const char* name;
    std::int64_t ticks;
  };
  double in_unit(Ticks time) const {
    return static_cast<double>(time.value) / static_cast<double>(unit_.ticks);
  }
  Unit unit_{};
};

double in_gib(Bytes bytes) { return static_cast<double>(bytes.value) / (1 << 30); }
std::string gib_text(Bytes bytes) { return fmt::format("{:.2f} GiB", in_gib(bytes)); }
std::string gib_change(Bytes bytes) {
  return bytes == Bytes() ? "0" : fmt::format("{:+.2f} GiB", in_gib(bytes));
}

std::string heading(const char* name, const ComparedPlan& plan) {
  const PlanFile& file = plan.job->file;
  return fmt::format("{}: {} on {}, {} GPUs: {}\n", name, file.model_name, file.cluster_name,
                     gpus_of(plan), strategy_text(plan.figures.strategy));
}

Document choices_table(const PlanDifference& d) {
  if (d.choices.empty()) return "\nThe plans are equal.\n";
  Table table = empty_table(left_aligned("differing choice"), "A", "B");
  for (const DifferingChoice& choice : d.choices)
    table.rows.push_back({choice.name, choice.a, choice.b});
  return Document("\n") + std::move(table);
}

Document step_table(const PlanDifference& d) {
  const Ticks a = d.a.figures.step_time, b = d.b.figures.step_time;
  const FixedTimes times(std::max(a, b));
  Table table = empty_table(left_aligned("step time, mean over all ranks"), "A", "B", "B - A");
  for (const ComparedTerm<Ticks>& term : d.terms.step)
    if (times.is_visible(term.a) || times.is_visible(term.b))
      table.rows.push_back(
          {term.name, times.text(term.a), times.text(term.b), times.change(term.change())});
  table.rows.push_back({"step time", times.text(a), times.text(b), times.change(b - a)});
  const auto rate = [](const ComparedPlan& plan) { return plan.figures.tokens_per_second_per_gpu; };
  table.rows.push_back({"tokens/s/GPU", fmt::format("{:.1f}", rate(d.a)),
                        fmt::format("{:.1f}", rate(d.b)),
                        fmt::format("{:+.1f}", rate(d.b) - rate(d.a))});
  constexpr double kPercent = 100;
  table.rows.push_back(
      {"MFU", percent(d.a.figures.mfu), percent(d.b.figures.mfu),
       fmt::format("{:+.1f} points", kPercent * (d.b.figures.mfu - d.a.figures.mfu))});
  return Document("\n") + std::move(table);
}

Document memory_terms_table(const PlanDifference& d) {
  Table table =
      empty_table(left_aligned("peak memory, fullest rank"),
                  fmt::format("A (pipeline rank {})", d.a.fullest_pipeline_rank),
                  fmt::format("B (pipeline rank {})", d.b.fullest_pipeline_rank), "B - A");
  const auto add = [&table](const std::string& name, Bytes a, Bytes b) {
    table.rows.push_back({name, gib_text(a), gib_text(b), gib_change(b - a)});
  };
  for (const ComparedTerm<Bytes>& term : d.terms.memory)
    if (term.a != Bytes() || term.b != Bytes()) add(term.name, term.a, term.b);
  const PlanFigures &a = d.a.figures, &b = d.b.figures;
  add("peak memory", a.peak_memory, b.peak_memory);
  add("headroom", a.memory_capacity - a.peak_memory, b.memory_capacity - b.peak_memory);
  return Document("\n") + std::move(table);
}

Document single_changes_text(const PlanDifference& d) {
  if (d.single_changes.empty()) return "";
  return Document("\nA with one of B's choices at a time, where that is a valid plan\n") +
         indented(neighbors_table("A", d.a.figures, d.single_changes));
}

/// "1.102 s less bubble, 0.300 s less recomputation", as seen from the faster plan.
std::string reasons_text(const std::vector<ComparedTerm<Ticks>>& reasons, bool b_is_faster,
                         const FixedTimes& times) {
  std::vector<std::string> parts;
  for (const ComparedTerm<Ticks>& reason : reasons) {
    const Ticks change = b_is_faster ? reason.change() : -reason.change();
    parts.push_back(fmt::format("{} {} {}", times.text(std::max(change, -change)),
                                change < Ticks() ? "less" : "more", reason.name));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "12.3 % more", "37.5 % fewer", "4.56 times as many".
std::string relative_count(double rate) {
  constexpr double kMuch = 2;
  if (rate >= kMuch) return fmt::format("{:.3g} times as many", rate);
  return fmt::format("{} {}", percent(std::abs(rate - 1)), rate >= 1 ? "more" : "fewer");
}

/// If steps have different numbers of tokens, only tokens per second compare.
std::string why_more_tokens(const PlanDifference& d, bool b_is_faster) {
  const ComparedPlan &fast = b_is_faster ? d.b : d.a, &slow = b_is_faster ? d.a : d.b;
  return fmt::format(
      "{} processes {} tokens per second; its steps have {} tokens instead of {}, so that step "
      "times do not compare.",
      b_is_faster ? "B" : "A", relative_count(b_is_faster ? speedup_of_b(d) : 1 / speedup_of_b(d)),
      grouped(tokens_per_step(fast)), grouped(tokens_per_step(slow)));
}

/// With other numbers of GPUs: the rate of each, of the faster plan relative to the slower one.
std::string per_gpu_text(const PlanDifference& d, bool b_is_faster) {
  if (gpus_of(d.a) == gpus_of(d.b)) return "";
  const ComparedPlan &fast = b_is_faster ? d.b : d.a, &slow = b_is_faster ? d.a : d.b;
  const double rate =
      fast.figures.tokens_per_second_per_gpu / slow.figures.tokens_per_second_per_gpu;
  return fmt::format(" It uses {} GPUs instead of {}: {} tokens per second and GPU.", gpus_of(fast),
                     gpus_of(slow), relative_count(rate));
}

std::string limits_text(const PlanDifference& d) {
  std::string text;
  if (d.a.job->file.model_config != d.b.job->file.model_config)
    text += fmt::format(" The models differ: compare the utilization, MFU {} (A) and {} (B).",
                        percent(d.a.figures.mfu), percent(d.b.figures.mfu));
  for (const auto& [name, plan] : {std::pair("A", &d.a), std::pair("B", &d.b)})
    if (const Bytes missing = missing_memory(plan->figures); missing > Bytes())
      text += fmt::format(" {} does not fit: it lacks {}.", name, to_text(missing));
  const auto &a = d.a.figures.range, &b = d.b.figures.range;
  if (a && b && is_faster_by_step(d) && d.a.figures.step_time != d.b.figures.step_time &&
      equal_within_error(*a, *b))
    text += " The ranges p10 to p90 of their predictions overlap.";
  return text;
}

template <class Amount>
DifferenceJson terms_json(const std::vector<ComparedTerm<Amount>>& terms, const std::string& unit) {
  DifferenceJson json = DifferenceJson::array();
  for (const ComparedTerm<Amount>& term : terms)
    json.push_back({{"term", term.name},
                    {"a_" + unit, term.a.value},
                    {"b_" + unit, term.b.value},
                    {"change_" + unit, term.change().value}});
  return json;
}

DifferenceJson plan_json_of(const ComparedPlan& plan) {
  const PlanFile& file = plan.job->file;
  return {{"model", file.model_name},
          {"cluster", file.cluster_name},
          {"trainer", file.trainer_name},
          {"gpus", gpus_of(plan)},
          {"tokens_per_step", tokens_per_step(plan)},
          {"fullest_pipeline_rank", plan.fullest_pipeline_rank},
          {"plan", DifferenceJson::parse(to_json(plan.figures))}};
}

}  // namespace

PlanDifference compare_plans(const Job& a, const Job& b) {
  PlanDifference result{.a = predicted_plan(a),
                        .b = predicted_plan(b),
                        .choices = differing_choices(a.file, b.file),
                        .terms = {},
                        .single_changes = {}};
  result.terms = difference(result.a.evaluation, result.b.evaluation);
  TrainingJob training = training_job(a);
  training.checkpoint = stop_if_interrupted;
  const Strategy& other = b.file.plan.strategy;
  result.single_changes = evaluate_changes_towards(training, other);
  if (result.single_changes.size() == 1 && result.single_changes.front().figures.strategy == other)
    result.single_changes.clear();
  return result;
}

std::string why_faster(const PlanDifference& d) {
  const double speedup = speedup_of_b(d);
  const bool b_is_faster = speedup > 1;
  if (speedup == 1) return "A and B are equally fast." + limits_text(d);
  if (!is_faster_by_step(d))
    return why_more_tokens(d, b_is_faster) + per_gpu_text(d, b_is_faster) + limits_text(d);
  const Ticks a = d.a.figures.step_time, b = d.b.figures.step_time;
  const FixedTimes times(std::max(a, b));
  const StepChangeReasons reasons = reasons_for_change(d.terms);
  const std::string against = reasons_text(reasons.against, b_is_faster, times);
  return fmt::format("{} is {} faster than {} ({} per step): {}{}.", b_is_faster ? "B" : "A",
                     percent((b_is_faster ? speedup : 1 / speedup) - 1), b_is_faster ? "A" : "B",
                     times.text(std::max(a - b, b - a)),
                     reasons_text(reasons.with, b_is_faster, times),
                     against.empty() ? "" : "; but " + against) +
         per_gpu_text(d, b_is_faster) + limits_text(d);
}

Document difference_text(const PlanDifference& d) {
  return heading("A", d.a) + heading("B", d.b) + choices_table(d) + step_table(d) +
         memory_terms_table(d) + single_changes_text(d) + "\n" + why_faster(d) + "\n";
}

std::string difference_json(const PlanDifference& d) {
  DifferenceJson choices = DifferenceJson::array(), changes = DifferenceJson::array();
  for (const DifferingChoice& choice : d.choices)
    choices.push_back({{"choice", choice.name}, {"a", choice.a}, {"b", choice.b}});
  for (const EvaluatedNeighbor& change : d.single_changes)
    changes.push_back({{"change", change.change},
                       {"missing_memory_bytes", missing_memory(change.figures).value},
                       {"plan", DifferenceJson::parse(to_json(change.figures))}});
  const double speedup = speedup_of_b(d);
  const DifferenceJson json{{"schema", 1},
                            {"a", plan_json_of(d.a)},
                            {"b", plan_json_of(d.b)},
                            {"choices", choices},
                            {"step_terms", terms_json(d.terms.step, "ps")},
                            {"memory_terms", terms_json(d.terms.memory, "bytes")},
                            {"a_with_one_choice_of_b", changes},
                            {"speedup_of_b", speedup},
                            {"why", why_faster(d)}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, DifferenceJson::error_handler_t::replace) + "\n";
}

}  // namespace meshwright

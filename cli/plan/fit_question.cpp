#include "cli/plan/fit_question.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/flags/help_formatter.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/parallel_sizes.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

using FitJson = nlohmann::ordered_json;

/// The fastest plan; none if the job does not fit or is impossible.
std::optional<PlanFigures> plan_that_fits(const PlanFlags& flags, const PlanRequest& request,
                                          const PlanModel& model, const PlanCluster& cluster) {
  stop_if_interrupted();
  try {
    const PlanSearch search = search_once(flags, request, model, cluster);
    if (!search.figures.empty()) return search.figures.front();
  } catch (const InputError&) {  // such as sizes that do not divide the job
  }
  return std::nullopt;
}

template <class Choice>
void add_freed(std::vector<std::pair<std::string, FixedChoices>>& freed, const FixedChoices& given,
               std::string flag, std::optional<Choice> FixedChoices::*choice) {
  if (!(given.*choice)) return;
  FixedChoices other = given;
  (other.*choice).reset();
  freed.emplace_back(std::move(flag), std::move(other));
}

/// For each fixed choice that affects memory: its flag, and `given` without it.
std::vector<std::pair<std::string, FixedChoices>> freed_choices(const FixedChoices& given) {
  std::vector<std::pair<std::string, FixedChoices>> freed;
  add_freed(freed, given, "--recompute", &FixedChoices::recompute);
  add_freed(freed, given, "--zero", &FixedChoices::zero);
  add_freed(freed, given, "--micro-batch", &FixedChoices::micro_batch);
  add_freed(freed, given, "--sequence-parallel", &FixedChoices::sequence_parallel);
  add_freed(freed, given, "--schedule", &FixedChoices::schedule);
  add_freed(freed, given, "--offload-optimizer", &FixedChoices::offload_optimizer);
  for (const ParallelSize& size : kParallelSizes) {
    if (!(given.*size.fixed)) continue;
    FixedChoices other = given;
    (other.*size.fixed).reset();
    freed.emplace_back(fmt::format("--{}", size.key), std::move(other));
  }
  return freed;
}

std::vector<FittingChange> other_choices(const PlanFlags& flags, const PlanRequest& request,
                                         const PlanModel& model, const PlanCluster& cluster) {
  std::vector<FittingChange> changes;
  for (auto& [flag, choices] : freed_choices(flags.choices)) {
    PlanFlags other = flags;
    other.choices = std::move(choices);
    if (const auto plan = plan_that_fits(other, request, model, cluster))
      changes.push_back(
          {.change = fmt::format("no fixed {}", flag), .factor = 1, .figures = *plan});
  }
  return changes;
}

/// On the next larger size on which a plan fits.
std::optional<FittingChange> more_devices(const PlanFlags& flags, PlanRequest request,
                                          const PlanModel& model, const PlanCluster& cluster) {
  if (request.gpus.empty()) return std::nullopt;  // no size is enough
  const int asked = request.gpus.front().smallest, most = device_count(cluster.cluster);
  if (asked >= most) return std::nullopt;
  for (const int size : sizes_in({.smallest = asked + 1, .largest = most}, cluster.cluster)) {
    request.gpus = {{.smallest = size, .largest = size}};
    if (const auto plan = plan_that_fits(flags, request, model, cluster))
      return FittingChange{.change = fmt::format("--gpus {}", size),
                           .factor = static_cast<double>(size) / asked,
                           .figures = *plan};
  }
  return std::nullopt;
}

std::optional<FittingChange> shorter_sequences(const PlanFlags& flags, PlanRequest request,
                                               const PlanModel& model, const PlanCluster& cluster) {
  if (!request.sequence_length || request.gpus.empty()) return std::nullopt;
  const std::int64_t asked = *request.sequence_length;
  request.sequence_length.reset();
  const auto plan = plan_that_fits(flags, request, model, cluster);
  if (!plan || plan->strategy.sequence_length >= asked) return std::nullopt;
  const std::int64_t length = plan->strategy.sequence_length;
  return FittingChange{.change = fmt::format("--seq {}", length),
                       .factor = static_cast<double>(asked) / static_cast<double>(length),
                       .figures = *plan};
}

std::string memory_text(const PlanFigures& figures) {
  return fmt::format("{} of {} per GPU", to_text(figures.peak_memory),
                     to_text(figures.memory_capacity));
}

/// "TP8 PP2x16 SP, interleaved-1f1b, …: 80 GiB of 80 GiB per GPU, step 5 s"
std::string plan_text(const PlanFigures& figures) {
  return fmt::format("{}: {}, step {}", strategy_text(figures.strategy), memory_text(figures),
                     to_text(figures.step_time));
}

std::string job_text(const PlanSearch& search) {
  return fmt::format("{} on {} GPU{} of {} with {} tokens per sequence", search.model->text.name,
                     search.goal.gpus, search.goal.gpus == 1 ? "" : "s", search.cluster->text.name,
                     search.goal.sequence_length);
}

std::string answer_text(const FitAnswer& answer) {
  const PlanSearch& search = answer.search;
  if (!search.figures.empty())
    return fmt::format("Yes: {} fits: {}\n", job_text(search), plan_text(search.figures.front()));
  const std::string reason = search.result.infeasible ? search.result.infeasible->reason : "";
  std::string text = fmt::format("No: {} does not fit: {}\n", job_text(search), reason);
  if (answer.changes.empty())
    return text + "Neither more GPUs of this cluster nor shorter sequences make it fit.\n";
  const FittingChange& smallest = answer.changes.front();
  return text + fmt::format("Smallest change that fits: {}: {}\n", smallest.change,
                            plan_text(smallest.figures));
}

std::vector<std::string> row_of(const std::string& job, const PlanFigures& figures) {
  return {job,
          "yes",
          strategy_text(figures.strategy),
          to_text(figures.peak_memory),
          to_text(figures.memory_capacity),
          to_text(figures.step_time)};
}

/// The job as it is, and with each change that makes it fit.
Table answer_table(const FitAnswer& answer) {
  Table table = empty_table(left_aligned("job"), left_aligned("fits"), left_aligned("plan"),
                            "peak memory", "of", "step");
  const std::string asked = "as given";
  if (answer.search.figures.empty())
    table.rows.push_back({asked, "no", "-", "-", "-", "-"});
  else
    table.rows.push_back(row_of(asked, answer.search.figures.front()));
  for (const FittingChange& change : answer.changes)
    table.rows.push_back(row_of(change.change, change.figures));
  return table;
}

}  // namespace

void add_fit_question_flags(CLI::App& command, PlanFlags& flags) {
  add_source_flags(command, flags.sources);
  {
    const OptionGroup group(command, kSourceOptions);
    add_value(command, "--gpus", flags.gpus, "N|auto",
              "number of GPUs; auto: the fewest on which a plan fits (default: auto)");
    add_value(command, "--margin", flags.margin, "SIZE",
              "memory to leave free on every device, such as 2GiB (default: 0)");
    add_count(command, "--time-limit", flags.time_limit, {0, 1 << 20},
              "seconds for each search (default: 10)");
  }
  {
    const OptionGroup group(command, kBatchOptions);
    add_value(command, "--global-batch", flags.global_batch, "N",
              "global batch size (default: 1024)");
    add_value(command, "--seq", flags.sequence_length, "N|max",
              "sequence length, in tokens; max: the longest that fits (default: 4096)");
  }
  add_choice_flags(command, flags.choices);
}

PlanFlags with_fit_defaults(PlanFlags flags) {
  for (const auto& [value, usual] :
       {std::pair(&flags.gpus, "auto"), std::pair(&flags.global_batch, "1024"),
        std::pair(&flags.sequence_length, "4096")})
    if (value->empty()) *value = usual;
  return flags;
}

PlanRequest fit_request(const PlanFlags& flags) {
  PlanRequest request = plan_request(flags);
  if (!is_single_search(request))
    refuse_flag("--gpus", "the question is about one job",
                "set one model, one cluster and one number of GPUs, or run 'meshwright plan'");
  return request;
}

FitAnswer answer_fit_question(PlanFlags flags, const PlanRequest& request, const PlanModel& model,
                              const PlanCluster& cluster) {
  flags.top = 1;
  FitAnswer answer{.search = search_once(flags, request, model, cluster), .changes = {}};
  if (!answer.search.figures.empty()) return answer;
  answer.changes = other_choices(flags, request, model, cluster);
  for (const auto& change : {more_devices(flags, request, model, cluster),
                             shorter_sequences(flags, request, model, cluster)})
    if (change) answer.changes.push_back(*change);
  std::ranges::stable_sort(answer.changes, {}, &FittingChange::factor);
  return answer;
}

Document fit_text(const FitAnswer& answer, DocumentFormat format) {
  Document text = answer_text(answer);
  if (format != DocumentFormat::kText) text += answer_table(answer);
  return text;
}

std::string fit_json(const FitAnswer& answer) {
  const PlanSearch& search = answer.search;
  const bool fits = !search.figures.empty();
  FitJson changes = FitJson::array();
  for (const FittingChange& change : answer.changes)
    changes.push_back(
        {{"change", change.change}, {"plan", FitJson::parse(to_json(change.figures))}});
  const FitJson json{
      {"schema", 1},
      {"model", search.model->text.name},
      {"cluster", search.cluster->text.name},
      {"gpus", search.goal.gpus},
      {"global_batch", search.goal.global_batch},
      {"seq", search.goal.sequence_length},
      {"fits", fits},
      {"plan", fits ? FitJson::parse(to_json(search.figures.front())) : FitJson()},
      {"reason", search.result.infeasible ? FitJson(search.result.infeasible->reason) : FitJson()},
      {"changes", changes}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, FitJson::error_handler_t::replace) + "\n";
}

}  // namespace meshwright

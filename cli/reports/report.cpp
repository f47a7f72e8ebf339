#include "cli/reports/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/base/parse_quantity.hpp"
#include "simulator/fit/error_bars.hpp"

namespace meshwright {
namespace {

using FiguresJson = nlohmann::ordered_json;

constexpr const char* kPlanTableNote =
    "bubble: share of the period, mean over ranks and busiest rank; exposed comm: share of the "
    "step\n";

constexpr const char* kStepBubbleNote =
    "  Shares of the whole step; the bubble of the period leaves out the wait for the optimizer.\n";

/// Indices in `ranks` of the ranks with the highest peak memory: one per pipeline rank, and one per
/// role if ranks of a pipeline rank hold different things (workers and parameter servers).
std::vector<std::size_t> fullest_rank_by_position(std::span<const RankInfo> ranks,
                                                  const Evaluation& evaluation) {
  std::vector<std::size_t> fullest;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto like_it = std::find_if(fullest.begin(), fullest.end(), [&](std::size_t known) {
      return ranks[known].coordinate.pipeline == ranks[r].coordinate.pipeline &&
             ranks[known].resident == ranks[r].resident;
    });
    if (like_it == fullest.end())
      fullest.push_back(r);
    else if (total(evaluation.peak_memory[*like_it]) < total(evaluation.peak_memory[r]))
      *like_it = r;
  }
  std::stable_sort(fullest.begin(), fullest.end(), [&](std::size_t a, std::size_t b) {
    return ranks[a].coordinate.pipeline < ranks[b].coordinate.pipeline;
  });
  return fullest;
}

/// The pipeline rank, followed by the rank where `chosen` has several of that pipeline rank.
std::string position_text(std::span<const RankInfo> ranks, std::span<const std::size_t> chosen,
                          std::size_t rank) {
  const int position = ranks[rank].coordinate.pipeline;
  const auto alike = std::count_if(chosen.begin(), chosen.end(), [&](std::size_t other) {
    return ranks[other].coordinate.pipeline == position;
  });
  if (alike == 1) return std::to_string(position);
  return fmt::format("{} (rank {})", position, ranks[rank].rank.value);
}

/// "10.2 GiB", or "-10.2 GiB" if the peak exceeds the capacity.
std::string headroom_text(Bytes capacity, Bytes peak) {
  return peak <= capacity ? to_text(capacity - peak) : fmt::format("-{}", to_text(peak - capacity));
}

double total_exposed(const PlanFigures& figures) {
  double sum = 0;
  for (const double share : figures.exposed_communication) sum += share;
  return sum;
}

/// Adds a column with `cell` of every item, unless all items are zero.
template <class Item>
void add_column_if_used(Table& table, const std::vector<Item>& items, std::string title,
                        const std::function<bool(const Item&)>& is_zero,
                        const std::function<std::string(const Item&)>& cell) {
  if (std::all_of(items.begin(), items.end(), is_zero)) return;
  table.columns.push_back({std::move(title), Align::kRight});
  for (std::size_t r = 0; r < items.size(); ++r) table.rows[r].push_back(cell(items[r]));
}

/// Completes "pruned 12 by …".
std::string_view cause_of(PruneReason reason) {
  return reason == PruneReason::kDominated ? "dominance" : name_of(reason);
}

/// Ticks of one rank or shares of the step, by the names of their parts.
template <class Parts, class Value>
FiguresJson parts_json(const Parts& parts, Value value) {
  FiguresJson compute = FiguresJson::object(), exposed = FiguresJson::object(),
              bubble = FiguresJson::object();
  for (std::size_t i = 0; i < parts.compute.size(); ++i)
    compute[std::string(name_of(static_cast<KernelKind>(i)))] = value(parts.compute[i]);
  for (std::size_t i = 0; i < parts.exposed_communication.size(); ++i)
    exposed[std::string(name_of(static_cast<Axis>(i)))] = value(parts.exposed_communication[i]);
  for (std::size_t i = 0; i < parts.bubble.size(); ++i)
    bubble[std::string(name_of(static_cast<BubbleCause>(i)))] = value(parts.bubble[i]);
  return {{"compute", compute},
          {"recompute", value(parts.recompute)},
          {"optimizer", value(parts.optimizer)},
          {"launch", value(parts.launch)},
          {"exposed_communication", exposed},
          {"bubble", bubble}};
}

FiguresJson memory_json(const MemoryAmounts& amounts) {
  FiguresJson json = FiguresJson::object();
  for (int i = 0; i < kMemoryClassCount; ++i)
    json[std::string(name_of(static_cast<MemoryClass>(i)))] =
        amounts[static_cast<MemoryClass>(i)].value;
  return json;
}

}  // namespace

namespace {

/// "  Plans 1 to 7 are equal within the error of the prediction.\n", or nothing.
std::string equal_plans_text(std::span<const PlanFigures> plans) {
  std::size_t equal = 0;
  while (equal < plans.size() && plans[equal].range &&
         equal_within_error(*plans.front().range, *plans[equal].range))
    ++equal;
  if (equal < 2) return "";
  const auto simplest = std::ranges::min_element(
      plans.first(equal), {}, [](const PlanFigures& f) { return feature_count(f.strategy); });
  std::string text =
      fmt::format("Plans 1 to {} are equal within the error of the prediction", equal);
  if (simplest != plans.begin())
    text += fmt::format("; plan {}, {} slower, is the simplest", simplest - plans.begin() + 1,
                        percent(ratio(simplest->step_time, plans.front().step_time) - 1));
  return text + ".\n";
}

}  // namespace

Document plan_table(std::span<const PlanFigures> plans, const Table& more) {
  Table table =
      empty_table("#", left_aligned("parallelism"), left_aligned("schedule"), "micro-batch",
                  left_aligned("recompute"), "ZeRO", "step", "tokens/s/GPU", "MFU", "bubble",
                  "busiest", "exposed comm", "peak memory", "headroom");
  for (const PlanFigures& f : plans) {
    table.rows.push_back({std::to_string(table.rows.size() + 1), split_text(f.strategy),
                          schedule_text(f.strategy), std::to_string(f.strategy.micro_batch),
                          to_text(f.strategy.recompute), std::to_string(f.strategy.zero),
                          to_text(f.step_time), fmt::format("{:.1f}", f.tokens_per_second_per_gpu),
                          percent(f.mfu), percent(f.bubble_of_period),
                          percent(f.busiest_rank_bubble), percent(total_exposed(f)),
                          to_text(f.peak_memory), headroom_text(f.memory_capacity, f.peak_memory)});
  }
  append_columns(table, more);
  Table options = empty_table(left_aligned("options"));
  for (const PlanFigures& f : plans) options.rows.push_back({options_text(f.strategy)});
  append_columns(table, options);
  return Document(std::move(table)) + kPlanTableNote + equal_plans_text(plans);
}

std::string bubble_text(const PlanFigures& f) {
  return fmt::format("{} (busiest rank {})", percent(f.bubble_of_period),
                     percent(f.busiest_rank_bubble));
}

std::string partial_nodes_text(const Cluster& cluster, std::int64_t ranks) {
  const int all = node_of(cluster, DeviceId(0)).device_count;
  const int used = used_devices_per_node(cluster, ranks).value_or(all);
  return used == all ? "" : fmt::format("{} of {} GPUs per node used\n", used, all);
}

namespace {

std::string range_text(const std::optional<StepTimeRange>& range) {
  if (!range) return "";
  return fmt::format(", likely {} to {} (p10 to p90)", to_text(range->p10), to_text(range->p90));
}

}  // namespace

std::vector<NamedValue> figures_list(const PlanFigures& f) {
  return {{"step time", fmt::format("{} (period {}){}", to_text(f.step_time), to_text(f.period),
                                    range_text(f.range))},
          {"throughput", fmt::format("{:.1f} tokens/s/GPU, {:.1f} model TFLOP/s/GPU",
                                     f.tokens_per_second_per_gpu, f.model_tflops_per_gpu)},
          {"utilization", fmt::format("MFU {}, HFU {}", percent(f.mfu), percent(f.hfu))},
          {"bubble", fmt::format("{} of the period", bubble_text(f))},
          {"exposed comm", fmt::format("{} of the step", percent(total_exposed(f)))},
          {"peak memory",
           fmt::format("{} of {}, headroom {}", to_text(f.peak_memory), to_text(f.memory_capacity),
                       headroom_text(f.memory_capacity, f.peak_memory))},
          {"allocator", fmt::format("{} allocated, {} reserved", to_text(f.peak_memory_allocated),
                                    to_text(f.peak_memory_reserved))}};
}

Table step_parts_table(const Evaluation& evaluation) {
  const StepShares shares = step_shares(evaluation);
  Table table = empty_table(left_aligned("component"), "share of step");
  const auto add = [&table](std::string name, double share) {
    if (share != 0) table.rows.push_back({std::move(name), percent(share)});
  };
  visit_parts(shares, add);
  return table;
}

Document step_parts_text(const Evaluation& evaluation) {
  const StepShares shares = step_shares(evaluation);
  const bool has_bubble = std::any_of(shares.bubble.begin(), shares.bubble.end(),
                                      [](double share) { return share != 0; });
  return indented(step_parts_table(evaluation)) + Document(has_bubble ? kStepBubbleNote : "");
}

Table memory_table(std::span<const RankInfo> ranks, const Evaluation& evaluation) {
  const std::vector<std::size_t> chosen = fullest_rank_by_position(ranks, evaluation);
  std::vector<MemoryAmounts> peaks;
  Table table = empty_table("pipeline rank");
  for (const std::size_t r : chosen) {
    peaks.push_back(evaluation.peak_memory[r]);
    table.rows.push_back({position_text(ranks, chosen, r)});
  }
  for (int i = 0; i < kMemoryClassCount; ++i) {
    const auto memory_class = static_cast<MemoryClass>(i);
    add_column_if_used<MemoryAmounts>(
        table, peaks, std::string(name_of(memory_class)),
        [=](const MemoryAmounts& m) { return m[memory_class] == Bytes(0); },
        [=](const MemoryAmounts& m) { return to_text(m[memory_class]); });
  }
  table.columns.push_back({"total", Align::kRight});
  table.columns.push_back({"headroom", Align::kRight});
  for (std::size_t r = 0; r < peaks.size(); ++r) {
    table.rows[r].push_back(to_text(total(peaks[r])));
    table.rows[r].push_back(
        headroom_text(memory_capacity_of(evaluation, chosen[r]), total(peaks[r])));
  }
  return table;
}

Table breakdown_table(std::span<const RankInfo> ranks, const Evaluation& evaluation) {
  std::vector<RankBreakdown> parts;
  Table table = empty_table("pipeline rank");
  const std::vector<std::size_t> chosen = fullest_rank_by_position(ranks, evaluation);
  for (const std::size_t r : chosen) {
    parts.push_back(evaluation.ranks[r]);
    table.rows.push_back({position_text(ranks, chosen, r)});
  }
  const auto add = [&](std::string title, const std::function<Ticks(const RankBreakdown&)>& part) {
    add_column_if_used<RankBreakdown>(
        table, parts, std::move(title), [&](const RankBreakdown& b) { return part(b) == Ticks(0); },
        [&](const RankBreakdown& b) { return to_text(part(b)); });
  };
  for (std::size_t kind = 0; kind < kKernelKindCount; ++kind)
    add(std::string(name_of(static_cast<KernelKind>(kind))),
        [kind](const RankBreakdown& b) { return b.compute[kind]; });
  add("recompute", [](const RankBreakdown& b) { return b.recompute; });
  add("optimizer", [](const RankBreakdown& b) { return b.optimizer; });
  add("launches", [](const RankBreakdown& b) { return b.launch; });
  for (std::size_t axis = 0; axis < kAxisCount; ++axis)
    add(fmt::format("exposed {}", name_of(static_cast<Axis>(axis))),
        [axis](const RankBreakdown& b) { return b.exposed_communication[axis]; });
  for (std::size_t cause = 0; cause < kBubbleCauseCount; ++cause)
    add(std::string(name_of(static_cast<BubbleCause>(cause))),
        [cause](const RankBreakdown& b) { return b.bubble[cause]; });
  return table;
}

std::string ranks_json(std::span<const RankInfo> ranks, const Evaluation& evaluation) {
  FiguresJson json{{"step_shares", parts_json(step_shares(evaluation), [](double x) { return x; })},
                   {"ranks", FiguresJson::array()}};
  for (std::size_t r = 0; r < ranks.size(); ++r)
    json["ranks"].push_back({{"pipeline", ranks[r].coordinate.pipeline},
                             {"multiplicity", ranks[r].multiplicity},
                             {"step_ns", parts_json(evaluation.ranks[r], to_nanoseconds)},
                             {"peak_memory_bytes", memory_json(evaluation.peak_memory[r])}});
  return json.dump();
}

namespace {

std::string optimality_text(const SearchCertificate& certificate) {
  constexpr const char* kOptimal = "optimal within the searched space and cost model";
  if (certificate.proved_optimal) return kOptimal;
  if (certificate.gap == 0)
    return fmt::format("plan 1 is {}; the search for the others stopped early", kOptimal);
  if (certificate.gap < 1)
    return fmt::format("stopped early: the optimum is at most {} faster", percent(certificate.gap));
  return "not proved optimal: no bound is known for the rest";
}

}  // namespace

std::string certificate_text(const SearchCertificate& certificate, Seconds time) {
  std::string pruned;
  for (std::size_t i = 0; i < certificate.pruned.size(); ++i) {
    if (certificate.pruned[i] == 0) continue;
    pruned += fmt::format("{}{} by {}", pruned.empty() ? "pruned " : ", ",
                          grouped(certificate.pruned[i]), cause_of(static_cast<PruneReason>(i)));
  }
  std::string text = fmt::format("Searched {} candidates in {}: {}{}{} simulated; {}.\n",
                                 grouped(certificate.candidates), to_text(time), pruned,
                                 pruned.empty() ? "" : "; ", grouped(certificate.simulated),
                                 optimality_text(certificate));
  if (!certificate.refined_by.empty())
    text += fmt::format("Plan 1 was then made faster by {}.\n",
                        fmt::join(certificate.refined_by, ", "));
  return text;
}

std::string cost_model_text(std::string_view provenance, std::string_view validation) {
  return fmt::format("Cost model: {}; {}.\n", provenance, validation);
}

std::string problems_json(std::span<const Diagnostic> problems) {
  FiguresJson json = FiguresJson::array();
  for (const Diagnostic& d : problems)
    json.push_back({{"where", d.where}, {"what", d.what}, {"hint", d.hint}});
  // File names may not be UTF-8.
  return json.dump(-1, ' ', false, FiguresJson::error_handler_t::replace);
}

}  // namespace meshwright

#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/table.hpp"
#include "core/parse_quantity.hpp"

namespace meshwright {
namespace {

/// Index in `ranks` of the rank with the largest peak, for every pipeline position, and at a
/// position for everything that ranks hold: workers and servers, say.
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

/// Its position, and the rank where several of a position differ.
std::string position_text(std::span<const RankInfo> ranks, std::span<const std::size_t> chosen,
                          std::size_t rank) {
  const int position = ranks[rank].coordinate.pipeline;
  const auto alike = std::count_if(chosen.begin(), chosen.end(), [&](std::size_t other) {
    return ranks[other].coordinate.pipeline == position;
  });
  if (alike == 1) return std::to_string(position);
  return fmt::format("{} (rank {})", position, ranks[rank].rank.value);
}

/// "10.2 GiB", or "-10.2 GiB" when the peak is above the capacity.
std::string headroom_text(Bytes capacity, Bytes peak) {
  return peak <= capacity ? to_text(capacity - peak) : fmt::format("-{}", to_text(peak - capacity));
}

double total_exposed(const PlanFigures& figures) {
  double sum = 0;
  for (const double share : figures.exposed_communication) sum += share;
  return sum;
}

/// Adds a column with `cell` of every row, unless `is_zero` for all of them.
template <class Item>
void add_column_if_used(Table& table, const std::vector<Item>& items, std::string title,
                        const std::function<bool(const Item&)>& is_zero,
                        const std::function<std::string(const Item&)>& cell) {
  if (std::all_of(items.begin(), items.end(), is_zero)) return;
  table.columns.push_back({std::move(title), Align::kRight});
  for (std::size_t r = 0; r < items.size(); ++r) table.rows[r].push_back(cell(items[r]));
}

std::string indented(const std::string& text) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    result += "  " + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

}  // namespace

std::string percent(double share) {
  constexpr double kHundred = 100;
  return fmt::format("{:.1f} %", kHundred * share);
}

std::string grouped(std::int64_t count) {
  std::string text = std::to_string(count);
  const int first_digit = text.front() == '-' ? 1 : 0;
  for (int i = static_cast<int>(text.size()) - 3; i > first_digit; i -= 3)
    text.insert(static_cast<std::size_t>(i), 1, ',');
  return text;
}

std::string plan_table(std::span<const PlanFigures> plans) {
  Table table{.columns = {{"#"},
                          {"split", Align::kLeft},
                          {"schedule", Align::kLeft},
                          {"mbs"},
                          {"recompute", Align::kLeft},
                          {"ZeRO"},
                          {"step"},
                          {"tokens/s/GPU"},
                          {"MFU"},
                          {"bubble"},
                          {"exposed"},
                          {"peak memory"},
                          {"headroom"}},
              .rows = {}};
  for (const PlanFigures& f : plans) {
    table.rows.push_back({std::to_string(table.rows.size() + 1), split_text(f.strategy),
                          f.strategy.schedule, std::to_string(f.strategy.micro_batch),
                          to_text(f.strategy.recompute), std::to_string(f.strategy.zero),
                          to_text(f.step_time), fmt::format("{:.1f}", f.tokens_per_second_per_gpu),
                          percent(f.mfu), percent(f.bubble_of_period), percent(total_exposed(f)),
                          to_text(f.peak_memory), headroom_text(f.memory_capacity, f.peak_memory)});
  }
  return to_text(table);
}

std::string figures_text(const PlanFigures& f) {
  std::string text;
  const auto line = [&text](const char* name, const std::string& value) {
    text += fmt::format("  {:<14}{}\n", name, value);
  };
  line("step time", fmt::format("{}  (period {})", to_text(f.step_time), to_text(f.period)));
  line("throughput", fmt::format("{:.1f} tokens/s/GPU, {:.1f} model TFLOP/s/GPU",
                                 f.tokens_per_second_per_gpu, f.model_tflops_per_gpu));
  line("utilisation", fmt::format("MFU {}, HFU {}", percent(f.mfu), percent(f.hfu)));
  line("bubble", fmt::format("{} of the period, {} of the makespan", percent(f.bubble_of_period),
                             percent(f.bubble_of_makespan)));
  line("exposed", percent(total_exposed(f)) + " of the step waits for communication");
  line("peak memory",
       fmt::format("{} of {}, headroom {}", to_text(f.peak_memory), to_text(f.memory_capacity),
                   headroom_text(f.memory_capacity, f.peak_memory)));
  return text;
}

std::string step_parts_text(const Evaluation& evaluation) {
  const StepShares shares = step_shares(evaluation);
  Table table{.columns = {{"part of the step", Align::kLeft}, {"share"}}, .rows = {}};
  const auto add = [&table](std::string name, double share) {
    if (share != 0) table.rows.push_back({std::move(name), percent(share)});
  };
  for (std::size_t kind = 0; kind < shares.compute.size(); ++kind)
    add(fmt::format("compute: {}", name_of(static_cast<KernelKind>(kind))), shares.compute[kind]);
  add("recomputation", shares.recompute);
  add("optimizer", shares.optimizer);
  for (std::size_t axis = 0; axis < shares.exposed_communication.size(); ++axis)
    add(fmt::format("exposed communication: {}", name_of(static_cast<Axis>(axis))),
        shares.exposed_communication[axis]);
  for (std::size_t cause = 0; cause < shares.bubble.size(); ++cause)
    add(fmt::format("bubble: {}", name_of(static_cast<BubbleCause>(cause))), shares.bubble[cause]);
  return indented(to_text(table));
}

std::string memory_table(std::span<const RankInfo> ranks, const Evaluation& evaluation) {
  const std::vector<std::size_t> chosen = fullest_rank_by_position(ranks, evaluation);
  std::vector<MemoryAmounts> peaks;
  Table table{.columns = {{"pipeline rank"}}, .rows = {}};
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
  const Bytes capacity = evaluation.memory_capacity;
  table.columns.push_back({"total", Align::kRight});
  table.columns.push_back({"headroom", Align::kRight});
  for (std::size_t r = 0; r < peaks.size(); ++r) {
    table.rows[r].push_back(to_text(total(peaks[r])));
    table.rows[r].push_back(headroom_text(capacity, total(peaks[r])));
  }
  return indented(to_text(table));
}

std::string breakdown_table(std::span<const RankInfo> ranks, const Evaluation& evaluation) {
  std::vector<RankBreakdown> parts;
  Table table{.columns = {{"pipeline rank"}}, .rows = {}};
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
  add("update", [](const RankBreakdown& b) { return b.optimizer; });
  for (std::size_t axis = 0; axis < kAxisCount; ++axis)
    add(fmt::format("wait {}", name_of(static_cast<Axis>(axis))),
        [axis](const RankBreakdown& b) { return b.exposed_communication[axis]; });
  for (std::size_t cause = 0; cause < kBubbleCauseCount; ++cause)
    add(std::string(name_of(static_cast<BubbleCause>(cause))),
        [cause](const RankBreakdown& b) { return b.bubble[cause]; });
  return indented(to_text(table));
}

std::string certificate_text(const SearchCertificate& certificate, Seconds time) {
  std::string pruned;
  for (std::size_t i = 0; i < certificate.pruned.size(); ++i) {
    if (certificate.pruned[i] == 0) continue;
    pruned += fmt::format("{}{} by {}", pruned.empty() ? "" : ", ", grouped(certificate.pruned[i]),
                          name_of(static_cast<PruneReason>(i)));
  }
  return fmt::format("Searched {} candidates in {}: {}{}{} simulated; {}.\n",
                     grouped(certificate.candidates), to_text(time),
                     pruned.empty() ? "" : "pruned ", pruned,
                     pruned.empty() ? fmt::format("{}", grouped(certificate.simulated))
                                    : ", " + grouped(certificate.simulated),
                     certificate.proved_optimal
                         ? "proved optimal among them"
                         : fmt::format("within {} of the best possible", percent(certificate.gap)));
}

}  // namespace meshwright

#include "core/timeline/evaluation_difference.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace meshwright {
namespace {

constexpr std::int64_t kWorthNaming = 10;  ///< divides the largest cause

struct Cause {
  std::string name;
  Ticks time;
};

template <class Parts>
Ticks sum_of(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), Ticks());
}

std::vector<Cause> causes_of(const RankBreakdown& parts) {
  std::vector<Cause> causes{{"compute", sum_of(parts.compute)},
                            {"recomputation", parts.recompute},
                            {"optimizer", parts.optimizer},
                            {"waiting for kernel launches", parts.launch}};
  for (const Axis axis : kAxes)
    causes.push_back({"exposed " + std::string(name_of(axis)) + " communication",
                      parts.exposed_communication[static_cast<std::size_t>(axis)]});
  causes.push_back({"bubble", sum_of(parts.bubble)});
  return causes;
}

Ticks magnitude(const ComparedTerm<Ticks>& term) { return std::max(term.change(), -term.change()); }

}  // namespace

EvaluationDifference difference(const Evaluation& a, const Evaluation& b) {
  EvaluationDifference result;
  const RankBreakdown of_a = mean_breakdown(a), of_b = mean_breakdown(b);
  visit_parts(of_a, [&](std::string name, Ticks time) {
    result.step.push_back({.name = std::move(name), .a = time, .b = {}});
  });
  std::size_t i = 0;
  visit_parts(of_b, [&](const std::string&, Ticks time) { result.step[i++].b = time; });
  const std::vector<Cause> causes_a = causes_of(of_a), causes_b = causes_of(of_b);
  for (std::size_t c = 0; c < causes_a.size(); ++c)
    result.causes.push_back({causes_a[c].name, causes_a[c].time, causes_b[c].time});
  result.memory = compare_memory(a.peak_memory[fullest_rank(a)], b.peak_memory[fullest_rank(b)]);
  return result;
}

std::vector<ComparedTerm<Bytes>> compare_memory(const MemoryAmounts& a, const MemoryAmounts& b) {
  std::vector<ComparedTerm<Bytes>> terms;
  for (int m = 0; m < kMemoryClassCount; ++m) {
    const auto memory_class = static_cast<MemoryClass>(m);
    terms.push_back({std::string(name_of(memory_class)), a[memory_class], b[memory_class]});
  }
  return terms;
}

StepChangeReasons reasons_for_change(const EvaluationDifference& difference) {
  Ticks whole, largest;
  for (const ComparedTerm<Ticks>& cause : difference.causes) {
    whole += cause.change();
    largest = std::max(largest, magnitude(cause));
  }
  StepChangeReasons reasons;
  if (whole == Ticks()) return reasons;
  for (const ComparedTerm<Ticks>& cause : difference.causes) {
    if (cause.change() == Ticks() || magnitude(cause) < largest / kWorthNaming) continue;
    const bool is_with = (cause.change() < Ticks()) == (whole < Ticks());
    (is_with ? reasons.with : reasons.against).push_back(cause);
  }
  for (auto* list : {&reasons.with, &reasons.against})
    std::ranges::stable_sort(*list, std::ranges::greater(), magnitude);
  return reasons;
}

}  // namespace meshwright

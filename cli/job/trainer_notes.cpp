#include "cli/job/trainer_notes.hpp"

#include <fmt/format.h>

namespace meshwright {
namespace {

/// "2 to 4 and 6": ascending numbers, three or more in a row as a range.
std::string ranges_text(const std::vector<int>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last < i + 2) last = i;
    parts.push_back(last == i ? std::to_string(numbers[i])
                              : fmt::format("{} to {}", numbers[i], numbers[last]));
    i = last + 1;
  }
  return enumeration(parts);
}

}  // namespace

std::vector<Diagnostic> trainer_problems(const Job& job, const JobFlags& flags) {
  const std::string& file = flags.plan_file;
  const std::string where = file.empty() ? "--" : (file == "-" ? "standard input" : file) + "#/";
  return trainer_problems(job.file.plan, job.trainer, where);
}

std::string trainer_notes(std::span<const Diagnostic> problems) {
  std::string text;
  for (const Diagnostic& problem : problems) text += fmt::format("Note: {}.\n", problem.what);
  return text;
}

std::string unsupported_plans_text(std::span<const RankedPlan> plans, const Trainer& trainer) {
  std::vector<int> numbers;
  std::vector<TrainerGap> all;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::vector<TrainerGap> gaps = trainer_gaps(trainer.abilities, plans[i].plan);
    if (gaps.empty()) continue;
    numbers.push_back(static_cast<int>(i) + 1);
    all.insert(all.end(), gaps.begin(), gaps.end());
  }
  if (numbers.empty()) return "";
  return fmt::format(
      "{0} cannot run plan{1} {2}: it has {3}. Use --trainer {0} to search only what it can run.\n",
      trainer.name, numbers.size() == 1 ? "" : "s", ranges_text(numbers), missing_text(all));
}

}  // namespace meshwright

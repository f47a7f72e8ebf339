#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

std::string join_formatted(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) text += format(d);
  return text;
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Optimal-string-alignment distance: insert, delete, replace and swap of neighbors cost 1.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), current(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (same ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, current);
  }
  return last[b.size()];
}

/// All flags begin alike, which makes none of them more likely.
std::string_view without_dashes(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return name;
}

}  // namespace

std::string format(const Diagnostic& d) {
  std::string text = fmt::format("error: {}: {}\n", d.where, d.what);
  if (!d.hint.empty()) text += fmt::format("  hint: {}\n", d.hint);
  return text;
}

InputError::InputError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(join_formatted(diagnostics)), diagnostics_(std::move(diagnostics)) {}

InputError::InputError(Diagnostic diagnostic)
    : InputError(std::vector<Diagnostic>{std::move(diagnostic)}) {}

void throw_if_any(const std::vector<Diagnostic>& problems) {
  if (!problems.empty()) throw InputError(problems);
}

RuntimeFailure::RuntimeFailure(Diagnostic diagnostic)
    : std::runtime_error(format(diagnostic)), diagnostic_(std::move(diagnostic)) {}

void report_broken_invariant(const char* condition, const char* file, int line) {
  throw InternalError(fmt::format("{}:{}: broken invariant: {}", file, line, condition));
}

std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates, std::size_t count) {
  constexpr std::size_t kLongestNameCompared = 200;  // the distance is quadratic
  if (name.size() > kLongestNameCompared) return {};
  const std::string_view word = without_dashes(name);
  std::vector<std::pair<std::size_t, std::size_t>> near;  // distance, position
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string_view candidate = without_dashes(candidates[i]);
    const std::size_t distance = edit_distance(word, candidate);
    if (2 * distance <= std::max(word.size(), candidate.size())) near.emplace_back(distance, i);
  }
  std::sort(near.begin(), near.end());
  near.resize(std::min(near.size(), count));
  std::vector<std::string> names;
  names.reserve(near.size());
  for (const auto& [distance, i] : near) names.push_back(candidates[i]);
  return names;
}

std::string enumeration(std::span<const std::string> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " and " : ", ", words[i]);
  return text;
}

std::string suggest(std::string_view name, std::span<const std::string> candidates) {
  const std::vector<std::string> near = nearest_names(name, candidates);
  if (near.empty()) return fmt::format("expected one of: {}", fmt::join(candidates, ", "));
  return fmt::format("did you mean '{}'?", fmt::join(near, "', '"));
}

}  // namespace meshwright

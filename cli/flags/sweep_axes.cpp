#include "cli/flags/sweep_axes.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/base/split_at.hpp"

namespace meshwright {
namespace {

constexpr const char* kForm = "write a strategy flag and its values: --over pp=1,2,4";

/// Sets one more flag in `flags`, with the parser of the other commands.
void set_flag(StrategyFlags& flags, const std::string& flag, const std::string& value) {
  CLI::App parser;
  parser.set_help_flag();
  add_batch_flags(parser, flags);
  add_choice_flags(parser, flags.choices);
  const CLI::Option* option = parser.get_option_no_throw(flag);
  if (option == nullptr) {
    std::vector<std::string> known;
    for (const CLI::Option* each : parser.get_options())
      for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
    throw UsageError({.where = "--over",
                      .what = fmt::format("unknown strategy flag '{}'", flag),
                      .hint = suggest(flag, known)});
  }
  if (option->get_items_expected_max() == 0)
    throw UsageError({.where = "--over",
                      .what = fmt::format("'{}' takes no value", flag),
                      .hint = "pass it without --over"});
  try {
    parser.parse(std::vector<std::string>{flag + "=" + value});
  } catch (const CLI::ParseError& error) {
    throw UsageError({.where = flag, .what = error.what(), .hint = kForm});
  }
}

}  // namespace

SweptFlag swept_flag_from_text(const std::string& text) {
  const std::size_t equals = text.find('=');
  SweptFlag swept{.flag = text.substr(0, equals), .values = {}};
  if (!swept.flag.starts_with("--")) swept.flag = "--" + swept.flag;
  if (equals != std::string::npos)
    for (const std::string_view value : split_at_commas(std::string_view(text).substr(equals + 1)))
      swept.values.emplace_back(value);
  const bool has_empty = std::any_of(swept.values.begin(), swept.values.end(),
                                     [](const auto& v) { return v.empty(); });
  if (swept.values.empty() || has_empty || swept.flag == "--")
    throw UsageError(
        {.where = "--over", .what = fmt::format("invalid value '{}'", text), .hint = kForm});
  return swept;
}

std::vector<SweptStrategy> combinations(const StrategyFlags& base,
                                        std::span<const SweptFlag> swept) {
  std::vector<SweptStrategy> all{{.value_of_flag = {}, .flags = base}};
  for (std::size_t f = 0; f < swept.size(); ++f) {
    const SweptFlag& flag = swept[f];
    const auto same = [&](const SweptFlag& other) { return other.flag == flag.flag; };
    if (std::any_of(swept.begin(), swept.begin() + static_cast<std::ptrdiff_t>(f), same))
      throw UsageError({.where = "--over",
                        .what = fmt::format("duplicate flag '{}'", flag.flag),
                        .hint = "list all its values in one --over"});
    if (all.size() * flag.values.size() > kMostSweepPoints)
      throw UsageError({.where = "--over",
                        .what = fmt::format("more than {} combinations", kMostSweepPoints),
                        .hint = "use fewer values"});
    std::vector<SweptStrategy> next;
    next.reserve(all.size() * flag.values.size());
    for (const SweptStrategy& one : all)
      for (std::size_t v = 0; v < flag.values.size(); ++v) {
        next.push_back(one);
        next.back().value_of_flag.push_back(v);
        set_flag(next.back().flags, flag.flag, flag.values[v]);
      }
    all = std::move(next);
  }
  return all;
}

}  // namespace meshwright

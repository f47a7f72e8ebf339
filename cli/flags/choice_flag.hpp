/// Options with a fixed set of values. For sources of this folder only: includes CLI11.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags/usage_error.hpp"

namespace meshwright {

/// "{a,b,c}", as in the help.
inline std::string choices_text(const std::vector<std::string>& words) {
  return fmt::format("{{{}}}", fmt::join(words, ","));
}

/// `parse` returns nullopt for an unknown word: a UsageError that suggests one of `words`. `Value`
/// is the parsed type, or an optional of it where it matters whether the option was given.
template <class Value, class Parse>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, Value& value, Parse parse,
                        const std::vector<std::string>& words, const std::string& description) {
  const auto set_value = [&value, flag, parse, words](const std::string& text) {
    const auto parsed = parse(text);
    if (!parsed)
      throw UsageError({.where = flag,
                        .what = fmt::format("invalid value '{}'", text),
                        .hint = suggest(text, words)});
    value = *parsed;
  };
  return app.add_option_function<std::string>(flag, set_value, description)
      ->type_name(choices_text(words));
}

/// The same for a value that stays text.
inline CLI::Option* add_choice(CLI::App& app, const std::string& flag, std::string& value,
                               const std::vector<std::string>& words,
                               const std::string& description) {
  const auto known = [words](const std::string& text) -> std::optional<std::string> {
    if (std::find(words.begin(), words.end(), text) == words.end()) return std::nullopt;
    return text;
  };
  return add_choice(app, flag, value, known, words, description);
}

}  // namespace meshwright

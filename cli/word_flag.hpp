/// A flag that takes one of a few words. For sources of this folder only: it brings CLI11 along.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/strategy_flags.hpp"
#include "core/error.hpp"

namespace meshwright {

/// `parse` gives nothing for a word it does not know. `value` is a choice, or an optional one where
/// it matters whether the flag was given.
template <class Value, class Parse>
void add_word_flag(CLI::App& app, const std::string& flag, Value& value, Parse parse,
                   const std::vector<std::string>& words, const std::string& description) {
  app.add_option_function<std::string>(
         flag,
         [&value, flag, parse, words](const std::string& text) {
           const auto parsed = parse(text);
           if (!parsed)
             throw UsageError({.where = flag,
                               .what = fmt::format("there is no '{}'", text),
                               .hint = suggest(text, words)});
           value = *parsed;
         },
         description)
      ->type_name(fmt::format("{}", fmt::join(words, "|")));
}

}  // namespace meshwright

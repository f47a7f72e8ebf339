#include "models/load/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/text/toml_reader.hpp"

namespace meshwright {
namespace {

/// A text or a number as a command line has it.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  return std::nullopt;
}

class RecipeReader {
 public:
  explicit RecipeReader(std::string file) : file_(std::move(file)) {}

  void read(const toml::table& table, bool is_group) {
    for (const auto& [key, node] : table) {
      const auto* group = node.as_table();
      if (group != nullptr && !is_group)
        read(*group, true);
      else
        read(std::string(key.str()), node);
    }
  }

  std::vector<RecipeEntry> finish() {
    throw_if_any(problems_);
    std::ranges::stable_sort(entries_, {}, &Placed::line);  // tables are sorted by key
    std::vector<RecipeEntry> entries;
    for (Placed& placed : entries_) entries.push_back(std::move(placed.entry));
    return entries;
  }

 private:
  struct Placed {
    RecipeEntry entry;
    std::uint32_t line = 0;
  };

  void read(const std::string& key, const toml::node& node) {
    RecipeEntry entry{.key = key, .where = place_of(node, file_), .values = {}, .is_on = {}};
    const auto earlier =
        std::ranges::find(entries_, key, [](const Placed& p) { return p.entry.key; });
    if (earlier != entries_.end())
      return problems_.push_back(
          {entry.where, fmt::format("'{}' is set twice, first at {}", key, earlier->entry.where),
           "remove one of them"});
    bool is_valid = true;
    const auto add = [&](const toml::node& value) {
      const std::optional<std::string> text = text_of(value);
      is_valid = is_valid && text.has_value();
      entry.values.push_back(text.value_or(""));
    };
    if (const auto* on = node.as_boolean())
      entry.is_on = on->get();
    else if (const auto* array = node.as_array())
      for (const toml::node& value : *array) add(value);
    else
      add(node);
    if (!is_valid)
      return problems_.push_back({entry.where,
                                  fmt::format("invalid value of '{}': expected a text, a number, "
                                              "true, false or an array of texts and numbers",
                                              key),
                                  "write it as on the command line"});
    entries_.push_back({std::move(entry), node.source().begin.line});
  }

  std::string file_;
  std::vector<Placed> entries_;
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::vector<RecipeEntry> recipe_from_toml(const NamedText& source) {
  RecipeReader reader(source.where);
  reader.read(parse_toml(source, "recipe"), false);
  return reader.finish();
}

}  // namespace meshwright

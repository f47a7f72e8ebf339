#include "cli/program/recipe.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/flags/usage_error.hpp"
#include "core/formats/file.hpp"
#include "models/load/recipe.hpp"

namespace meshwright {
namespace {

constexpr const char* kRecipeFlag = "--recipe";
constexpr const char* kPlanKey = "plan";

std::string value_of(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option == nullptr || option->count() == 0 ? "" : option->results().front();
}

bool is_given(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

/// Keys of recipes: long options without dashes, and the plan file.
std::vector<std::string> keys_of(const CLI::App& command) {
  std::vector<std::string> keys{kPlanKey};
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      if (name != "help" && "--" + name != kRecipeFlag && !option->get_group().empty())
        keys.push_back(name);
  return keys;
}

/// Adds the options of the recipe that the command line does not have.
class RecipeExpansion {
 public:
  RecipeExpansion(const CLI::App& command, RecipeArguments& result, bool has_plan)
      : command_(command), keys_(keys_of(command)), result_(result), has_plan_(has_plan) {}

  void add(const RecipeEntry& entry) {
    if (std::ranges::find(keys_, entry.key) == keys_.end())
      return problems_.push_back(
          {entry.where, fmt::format("unknown key '{}'", entry.key), suggest(entry.key, keys_)});
    if (entry.key == kPlanKey) return add_plan(entry);
    const std::string flag = "--" + entry.key, opposite = "--no-" + entry.key;
    if (is_given(command_, flag) || is_given(command_, opposite)) return;
    result_.origins[flag] = entry.where;
    if (const CLI::Option& option = *command_.get_option(flag);
        option.get_items_expected_max() == 0)
      add_switch(entry, opposite);
    else if (entry.is_on)
      expect(entry, "a value instead of true or false");
    else if (option.get_items_expected_max() > 1)
      for (const std::string& value : entry.values)
        result_.arguments.push_back(fmt::format("{}={}", flag, value));
    else
      result_.arguments.push_back(fmt::format("{}={}", flag, fmt::join(entry.values, ",")));
  }
  void finish() const { throw_if_any(problems_); }

 private:
  void add_plan(const RecipeEntry& entry) {
    if (entry.values.size() != 1) return expect(entry, "a file");
    if (!has_plan_) result_.arguments.push_back(entry.values.front());
  }
  void add_switch(const RecipeEntry& entry, const std::string& opposite) {
    if (!entry.is_on) return expect(entry, "true or false");
    if (*entry.is_on)
      result_.arguments.push_back("--" + entry.key);
    else if (command_.get_option_no_throw(opposite) != nullptr)
      result_.arguments.push_back(opposite);
  }
  void expect(const RecipeEntry& entry, const char* what) {
    problems_.push_back(
        {entry.where, fmt::format("invalid value of '{}': expected {}", entry.key, what), ""});
  }

  const CLI::App& command_;
  std::vector<std::string> keys_;
  RecipeArguments& result_;
  bool has_plan_;  ///< on the command line
  std::vector<Diagnostic> problems_;
};

}  // namespace

std::optional<std::string> recipe_of(const CLI::App& command) {
  if (command.get_option_no_throw(kRecipeFlag) == nullptr) return std::nullopt;
  const std::string by_flag = value_of(command, kRecipeFlag), plan = value_of(command, kPlanKey);
  const bool is_recipe = plan.ends_with(".toml");
  if (is_recipe && !by_flag.empty())
    throw UsageError({.where = kRecipeFlag,
                      .what = fmt::format("cannot be combined with the recipe '{}'", plan),
                      .hint = "use one recipe"});
  if (is_recipe) return plan;
  return by_flag.empty() ? std::nullopt : std::optional(by_flag);
}

RecipeArguments with_recipe(const CLI::App& command, const std::vector<std::string>& arguments,
                            const std::string& recipe) {
  RecipeArguments result{.arguments = arguments, .origins = {}};
  // As an option, to make room for the plan file.
  const std::string plan = value_of(command, kPlanKey);
  if (plan == recipe)
    *std::ranges::find(result.arguments, recipe) = fmt::format("{}={}", kRecipeFlag, recipe);
  RecipeExpansion expansion(command, result, !plan.empty() && plan != recipe);
  for (const RecipeEntry& entry :
       recipe_from_toml({.name = recipe, .where = recipe, .text = read_file(recipe)}))
    expansion.add(entry);
  expansion.finish();
  return result;
}

std::vector<Diagnostic> placed_in_recipe(std::vector<Diagnostic> diagnostics,
                                         const std::map<std::string, std::string>& origins) {
  for (Diagnostic& diagnostic : diagnostics)
    if (const auto origin = origins.find(diagnostic.where); origin != origins.end())
      diagnostic.where = fmt::format("{}: {}", origin->second, diagnostic.where.substr(2));
  return diagnostics;
}

}  // namespace meshwright

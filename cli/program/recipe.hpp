/// Recipes of `run`: a TOML file with options of the command line, which override it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace CLI {
class App;
}

namespace meshwright {

/// The recipe of a parsed command: the value of --recipe, or a first argument that ends in ".toml".
/// UsageError for both.
std::optional<std::string> recipe_of(const CLI::App& command);

/// A command line with the options of its recipe.
struct RecipeArguments {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> origins;  ///< "--lr" → "run.toml:3:6", if from the recipe
};
/// `command` was parsed from `arguments`. InputError for unknown keys, with the nearest option.
RecipeArguments with_recipe(const CLI::App& command, const std::vector<std::string>& arguments,
                            const std::string& recipe);

/// The diagnostics, which name the place in the recipe instead of an option that is set there.
std::vector<Diagnostic> placed_in_recipe(std::vector<Diagnostic> diagnostics,
                                         const std::map<std::string, std::string>& origins);

}  // namespace meshwright

/// Recipes of `run`: command-line options as a TOML file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/text/named_text.hpp"

namespace meshwright {

/// `key = value`: the option --key.
struct RecipeEntry {
  std::string key, where;           ///< where: "run.toml:3:1"
  std::vector<std::string> values;  ///< several for an array
  std::optional<bool> is_on;        ///< if the value is a boolean
};

/// In the order of the file. Tables group keys and have no other meaning. InputError for other
/// values than texts, numbers, booleans and arrays of the former, and for a key in two tables.
std::vector<RecipeEntry> recipe_from_toml(const NamedText& source);

}  // namespace meshwright

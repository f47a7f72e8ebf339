/// Parsed TOML tables as text again, for the loaders of the formats that are embedded in them.
#pragma once

#include <toml++/toml.h>

#include <string>

#include "core/base/json_value.hpp"

namespace meshwright {

/// TOML with every value on its line and in its column of the original file, so that positions in
/// errors about the text are positions in that file. Several values on one line, as in an inline
/// table, move to the lines below it.
std::string text_with_positions(const toml::table& table);

/// JSON text of a table.
std::string json_text_of(const toml::table& table);

/// Dates and times become null.
JsonValue json_value_of(const toml::node& node);

}  // namespace meshwright

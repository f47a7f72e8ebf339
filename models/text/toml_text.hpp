/// Values as TOML text that the readers of this folder read back exactly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

std::string toml_quoted(std::string_view text);
/// A key, in quotes if it needs them.
std::string key_text(std::string_view key);
/// The shortest quoted text in the customary unit if it reads back exactly, else in base units.
std::string text_of(BytesPerSecond rate);
std::string text_of(FlopsPerSecond rate);
std::string text_of(Seconds time);
std::string text_of(Bytes bytes);
/// One comment line each; control characters become spaces.
std::string toml_comment(const std::vector<std::string>& lines);

}  // namespace meshwright

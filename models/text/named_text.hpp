/// A configuration file as text, with its origin.
#pragma once

#include <string>

namespace meshwright {

/// A configuration as text, with its origin. Plan files embed it.
struct NamedText {
  std::string name;   ///< preset name, or file name without extension
  std::string where;  ///< for messages: path or "preset NAME"
  std::string text;   ///< config.json or cluster TOML
  friend bool operator==(const NamedText&, const NamedText&) = default;
};

}  // namespace meshwright

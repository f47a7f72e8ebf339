/// Reads a HuggingFace config.json: typed keys with defaults, every complaint with JSON pointer,
/// value and what would be right. Complaints are collected, so that a user sees all at once.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "models/load.hpp"

namespace meshwright {

/// Largest width, count or length in a configuration. Products of two fit into 64 bits.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 31;
inline constexpr std::int64_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostHeads = 1 << 16;
inline constexpr std::int64_t kMostExperts = 1 << 16;

/// InputError with file:line:column if the text is not JSON, or not an object.
nlohmann::json parse_config(const NamedText& config);

/// One JSON object of a configuration. Absent keys take the default given; unknown keys do not
/// matter. After a complaint a harmless value is returned and reading goes on.
class ConfigReader {
 public:
  /// `where` names the object in messages: "config.json#" or "config.json#/text_config".
  ConfigReader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  bool has(std::string_view key) const;  ///< present and not null
  std::string where_of(std::string_view key) const;

  /// A whole number from 1 to `most`.
  std::int64_t dimension(std::string_view key, std::int64_t absent,
                         std::int64_t most = kLargestDimension);
  /// The same, where null says "none".
  std::optional<std::int64_t> optional_dimension(std::string_view key,
                                                 std::optional<std::int64_t> absent,
                                                 std::int64_t most = kLargestDimension);
  /// A whole number from 0 to `most`; null is 0.
  std::int64_t count(std::string_view key, std::int64_t absent, std::int64_t most);
  bool flag(std::string_view key, bool absent);
  /// A probability of dropout, below 1.
  double dropout(std::string_view key, double absent);
  /// One of `allowed`.
  std::string choice(std::string_view key, const std::string& absent,
                     const std::vector<std::string>& allowed);
  /// Empty if absent or null.
  std::vector<std::string> strings(std::string_view key);
  std::vector<std::int64_t> counts(std::string_view key, std::int64_t most);

  void complain(std::string_view key, std::string what, std::string hint);
  bool is_clean() const { return complaints_.empty(); }
  /// InputError with all complaints, if there are any.
  void throw_complaints() const;

 private:
  const nlohmann::json* find(std::string_view key) const;
  void refuse_whole_number(std::string_view key, const nlohmann::json& value, std::int64_t least,
                           std::int64_t most);

  const nlohmann::json& object_;
  std::string where_;
  std::vector<Diagnostic> complaints_;
};

/// The value as messages show it: short, valid UTF-8, with its type where that is the point.
std::string shown(const nlohmann::json& value);

}  // namespace meshwright

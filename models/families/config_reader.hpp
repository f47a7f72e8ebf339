/// Reads a HuggingFace config.json: typed keys with defaults. Errors name JSON pointer, value and
/// what was expected; all of them are collected and reported together.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// Largest width, count or length in a configuration. Products of two fit into 64 bits.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 31;
inline constexpr std::int64_t kMostLayers = 10'000;
inline constexpr std::int64_t kMostHeads = 1 << 16;
inline constexpr std::int64_t kMostExperts = 1 << 16;

/// InputError with file:line:column if the text is not JSON, or not an object.
nlohmann::json parse_config(const NamedText& config);

/// One JSON object of a configuration. An absent key takes the given default. After an error, a
/// harmless value is returned and reading continues. The reader remembers every key it was asked
/// for: all others are unknown.
class ConfigReader {
 public:
  /// `where` names the object in messages: "config.json#" or "config.json#/text_config".
  ConfigReader(const nlohmann::json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  bool has(std::string_view key);  ///< present and not null
  std::string where_of(std::string_view key) const;

  /// A whole number from 1 to `most`.
  std::int64_t dimension(std::string_view key, std::int64_t absent,
                         std::int64_t most = kLargestDimension);
  /// The same, where null means "none".
  std::optional<std::int64_t> optional_dimension(std::string_view key,
                                                 std::optional<std::int64_t> absent,
                                                 std::int64_t most = kLargestDimension);
  /// A token ID, where null means "none". Negative ones count from the end of the vocabulary; none
  /// outside of it exists.
  std::optional<std::int64_t> token(std::string_view key, std::optional<std::int64_t> absent,
                                    std::int64_t vocabulary);
  /// A whole number from 0 to `most`; null is 0.
  std::int64_t count(std::string_view key, std::int64_t absent, std::int64_t most);
  bool flag(std::string_view key, bool absent);
  /// True or false, or a whole number that stands for it.
  bool is_set(std::string_view key, bool absent);
  /// A dropout probability in [0, 1).
  double dropout(std::string_view key, double absent);
  /// A number in (0, 1].
  double share(std::string_view key, double absent);
  /// A number greater than 0.
  double positive(std::string_view key, double absent);
  /// A number of at least 0.
  double not_negative(std::string_view key, double absent);
  /// The same, where null means 0.
  double off_or_positive(std::string_view key, double absent);
  /// Absent if the key is absent or null.
  std::optional<double> optional_number(std::string_view key);
  /// Numbers greater than 0; empty if absent or null.
  std::vector<double> positive_numbers(std::string_view key);
  /// The object under `key`; absent if the key is absent or null.
  std::optional<ConfigReader> object(std::string_view key);
  /// Adds what reading an inner object found to the complaints and warnings of this one.
  void adopt(const ConfigReader& inner);
  /// One of `allowed`.
  std::string choice(std::string_view key, const std::string& absent,
                     const std::vector<std::string>& allowed);
  /// Empty if absent or null.
  std::vector<std::string> strings(std::string_view key);
  std::vector<std::int64_t> counts(std::string_view key, std::int64_t most);

  /// For a key with several names (`attribute_map` of a HuggingFace class): the name used in this
  /// object, the first of `names` if none is. An error if two names have different values.
  std::string_view name_in_use(std::initializer_list<std::string_view> names);
  /// Marks keys that this model type has but that do not affect its size or cost.
  void ignore(std::initializer_list<std::string_view> keys);
  /// The same for a key that has no effect if its value is `value`.
  void ignore_if(std::string_view key, std::string_view value);

  void complain(std::string_view key, std::string what, std::string hint);
  /// An error unless the key is absent or its value turns the feature off: null, false, 0 or empty.
  void refuse(std::initializer_list<std::string_view> keys);
  bool is_clean() const { return complaints_.empty(); }
  /// InputError with all complaints, if there are any.
  void throw_complaints() const;

  /// Warnings about keys that were neither asked for nor are known to be irrelevant to the size and
  /// cost of a model (is_irrelevant_config_key), each with the nearest key that was asked for.
  /// Unknown keys set to null, false, 0 or an empty value are reported only if misspelled.
  std::vector<Diagnostic> warnings_about_unknown_keys() const;

 private:
  const nlohmann::json* find(std::string_view key);
  template <class IsValid>
  double number_if(IsValid is_valid, std::string_view key, double absent,
                   std::string_view expected);
  void refuse_whole_number(std::string_view key, const nlohmann::json& value, std::int64_t least,
                           std::int64_t most);

  const nlohmann::json& object_;
  std::string where_;
  std::set<std::string, std::less<>> asked_;
  std::vector<Diagnostic> complaints_, inner_warnings_;
};

/// The value as messages show it: short, printable ASCII.
std::string shown(const nlohmann::json& value);

}  // namespace meshwright

#include "models/families/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/json_value.hpp"
#include "models/families/irrelevant_config_keys.hpp"
#include "models/text/printable_text.hpp"

namespace meshwright {
namespace {

using nlohmann::json;

constexpr const char* kPassAConfig = "pass a HuggingFace config.json";

/// Line and column, from 1, of a position in the text.
std::pair<std::size_t, std::size_t> line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  return {line, before.size() - line_start + 1};
}

/// The parser's message without its "[...] parse error at line 1, column 2: " prefix; printable.
std::string reason_of(const json::parse_error& error) {
  std::string text = error.what();
  const std::size_t column = text.find("column ");
  const std::size_t colon = text.find(": ", column == std::string::npos ? 0 : column);
  if (colon != std::string::npos) text.erase(0, colon + 2);
  return printable_text(text, std::string::npos);
}

/// The integer, if it is one that fits into 64 bits.
std::optional<std::int64_t> integer_of(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

/// Null, false, zero and empty values: an unknown feature that is off does not change the model.
bool is_off(const json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number()) return value.get<double>() == 0;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.empty();  // null is empty, too
}

}  // namespace

std::string shown(const json& value) {
  constexpr std::size_t kLongest = 40;
  if (value.is_structured()) return value.is_array() ? "[...]" : "{...}";
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

json parse_config(const NamedText& config) {
  json parsed;
  try {
    parsed = json::parse(config.text);
  } catch (const json::parse_error& error) {
    const auto [line, column] =
        line_and_column(config.text, error.byte == 0 ? 0 : std::size_t{error.byte} - 1);
    throw InputError({fmt::format("{}:{}:{}", config.where, line, column),
                      fmt::format("invalid JSON: {}", reason_of(error)), kPassAConfig});
  } catch (const json::out_of_range& error) {  // a number such as 1e999
    throw InputError({config.where, "number out of range", kPassAConfig});
  }
  if (!parsed.is_object())
    throw InputError({fmt::format("{}#", config.where),
                      fmt::format("expected an object, got {}", shown(parsed)), kPassAConfig});
  return parsed;
}

const json* ConfigReader::find(std::string_view key) {
  asked_.emplace(key);
  const auto it = object_.find(std::string(key));
  return it == object_.end() ? nullptr : &*it;
}

bool ConfigReader::has(std::string_view key) {
  const json* value = find(key);
  return value != nullptr && !value->is_null();
}

std::string ConfigReader::where_of(std::string_view key) const {
  return fmt::format("{}/{}", where_, key);
}

void ConfigReader::complain(std::string_view key, std::string what, std::string hint) {
  complaints_.push_back({where_of(key), std::move(what), std::move(hint)});
}

void ConfigReader::throw_complaints() const { throw_if_any(complaints_); }

void ConfigReader::refuse_whole_number(std::string_view key, const json& value, std::int64_t least,
                                       std::int64_t most) {
  if (value.is_number_integer())
    return complain(
        key, fmt::format("{} is out of range: expected {} to {}", shown(value), least, most), "");
  complain(key,
           fmt::format("invalid value {}: expected a whole number from {} to {}", shown(value),
                       least, most),
           "");
}

std::int64_t ConfigReader::dimension(std::string_view key, std::int64_t absent, std::int64_t most) {
  const json* value = find(key);
  if (value == nullptr) return absent;
  const std::optional<std::int64_t> number = integer_of(*value);
  if (number && *number >= 1 && *number <= most) return *number;
  refuse_whole_number(key, *value, 1, most);
  return 1;
}

std::optional<std::int64_t> ConfigReader::optional_dimension(std::string_view key,
                                                             std::optional<std::int64_t> absent,
                                                             std::int64_t most) {
  const json* value = find(key);
  if (value == nullptr) return absent;
  if (value->is_null()) return std::nullopt;
  return dimension(key, 1, most);
}

std::optional<std::int64_t> ConfigReader::token(std::string_view key,
                                                std::optional<std::int64_t> absent,
                                                std::int64_t vocabulary) {
  const json* value = find(key);
  if (value != nullptr && value->is_null()) return std::nullopt;
  std::optional<std::int64_t> number = value == nullptr ? absent : integer_of(*value);
  if (value != nullptr && !number)
    complain(key, fmt::format("expected a token ID or null, got {}", shown(*value)),
             "use the ID of the padding token");
  if (number && *number < 0) *number += vocabulary;
  return number && *number >= 0 && *number < vocabulary ? number : std::nullopt;
}

std::int64_t ConfigReader::count(std::string_view key, std::int64_t absent, std::int64_t most) {
  const json* value = find(key);
  if (value == nullptr) return absent;
  if (value->is_null()) return 0;
  const std::optional<std::int64_t> number = integer_of(*value);
  if (number && *number >= 0 && *number <= most) return *number;
  refuse_whole_number(key, *value, 0, most);
  return 0;
}

bool ConfigReader::flag(std::string_view key, bool absent) {
  const json* value = find(key);
  if (value == nullptr || value->is_null()) return absent;
  if (value->is_boolean()) return value->get<bool>();
  complain(key, fmt::format("invalid value {}: expected true or false", shown(*value)), "");
  return absent;
}

bool ConfigReader::is_set(std::string_view key, bool absent) {
  const json* value = find(key);
  if (value != nullptr && value->is_number_integer()) return value->get<std::int64_t>() != 0;
  return flag(key, absent);
}

double ConfigReader::share(std::string_view key, double absent) {
  return number_if([](double v) { return v > 0 && v <= 1; }, key, absent,
                   "greater than 0 and at most 1");
}

double ConfigReader::dropout(std::string_view key, double absent) {
  return number_if([](double v) { return v >= 0 && v < 1; }, key, absent,
                   "at least 0 and less than 1");
}

double ConfigReader::positive(std::string_view key, double absent) {
  return number_if([](double v) { return v > 0; }, key, absent, "greater than 0");
}

double ConfigReader::not_negative(std::string_view key, double absent) {
  return number_if([](double v) { return v >= 0; }, key, absent, "at least 0");
}

double ConfigReader::off_or_positive(std::string_view key, double absent) {
  const json* value = find(key);
  if (value == nullptr) return absent;
  return value->is_null() ? 0 : positive(key, absent);
}

std::optional<double> ConfigReader::optional_number(std::string_view key) {
  if (!has(key)) return std::nullopt;
  return number_if([](double) { return true; }, key, 0, "a number");
}

std::vector<double> ConfigReader::positive_numbers(std::string_view key) {
  const json* value = find(key);
  std::vector<double> numbers;
  if (value == nullptr || value->is_null()) return numbers;
  const bool are_positive =
      value->is_array() && std::all_of(value->begin(), value->end(), [](const json& v) {
        return v.is_number() && v.get<double>() > 0;
      });
  if (!are_positive) {
    complain(key, fmt::format("expected an array of positive numbers, got {}", shown(*value)), "");
    return numbers;
  }
  for (const json& number : *value) numbers.push_back(number.get<double>());
  return numbers;
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) {
  const json* value = find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_object()) return ConfigReader(*value, where_of(key));
  complain(key, fmt::format("expected an object, got {}", shown(*value)), "");
  return std::nullopt;
}

void ConfigReader::adopt(const ConfigReader& inner) {
  complaints_.insert(complaints_.end(), inner.complaints_.begin(), inner.complaints_.end());
  const std::vector<Diagnostic> warnings = inner.warnings_about_unknown_keys();
  inner_warnings_.insert(inner_warnings_.end(), warnings.begin(), warnings.end());
}

void ConfigReader::refuse(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const json* value = find(key); value != nullptr && !is_off(*value))
      complain(key, fmt::format("'{}' is not supported (it is {})", key, shown(*value)),
               "remove it to build the model without it");
}

template <class IsValid>
double ConfigReader::number_if(IsValid is_valid, std::string_view key, double absent,
                               std::string_view expected) {
  const json* value = find(key);
  if (value == nullptr || value->is_null()) return absent;
  if (value->is_number() && is_valid(value->get<double>())) return value->get<double>();
  complain(key, fmt::format("must be {}, got {}", expected, shown(*value)), "");
  return absent;
}

std::string ConfigReader::choice(std::string_view key, const std::string& absent,
                                 const std::vector<std::string>& allowed) {
  const json* value = find(key);
  if (value == nullptr || value->is_null()) return absent;
  std::string text = value->is_string() ? value->get<std::string>() : "";
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  complain(key, fmt::format("invalid value {}", shown(*value)), suggest(text, allowed));
  return absent;
}

std::vector<std::string> ConfigReader::strings(std::string_view key) {
  const json* value = find(key);
  std::vector<std::string> texts;
  if (value == nullptr || value->is_null()) return texts;
  const bool are_strings =
      value->is_array() &&
      std::all_of(value->begin(), value->end(), [](const json& v) { return v.is_string(); });
  if (!are_strings) {
    complain(key, fmt::format("expected an array of strings, got {}", shown(*value)), "");
    return texts;
  }
  for (const json& text : *value) texts.push_back(text.get<std::string>());
  return texts;
}

std::vector<std::int64_t> ConfigReader::counts(std::string_view key, std::int64_t most) {
  const json* value = find(key);
  std::vector<std::int64_t> numbers;
  if (value == nullptr || value->is_null()) return numbers;
  const auto refuse = [&] {
    complain(
        key,
        fmt::format("expected an array of whole numbers from 0 to {}, got {}", most, shown(*value)),
        "");
    return std::vector<std::int64_t>{};
  };
  if (!value->is_array()) return refuse();
  for (const json& item : *value) {
    const std::optional<std::int64_t> number = integer_of(item);
    if (!number || *number < 0 || *number > most) return refuse();
    numbers.push_back(*number);
  }
  return numbers;
}

std::string_view ConfigReader::name_in_use(std::initializer_list<std::string_view> names) {
  const json* value = nullptr;
  std::string_view in_use = *names.begin();
  for (const std::string_view name : names) {
    if (!has(name)) continue;
    if (value == nullptr) {
      value = find(name);
      in_use = name;
    } else if (*value != *find(name)) {
      complain(
          name,
          fmt::format("{} conflicts with '{}' = {}", shown(*find(name)), in_use, shown(*value)),
          "remove one of them: they are two names of one setting");
    }
  }
  return in_use;
}

void ConfigReader::ignore(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) asked_.emplace(key);
}

void ConfigReader::ignore_if(std::string_view key, std::string_view value) {
  const auto it = object_.find(std::string(key));
  if (it != object_.end() && *it == value) asked_.emplace(key);
}

// ---- unknown keys -------------------------------------------------------------------------------

namespace {

/// True if the two differ in one place, by at most two characters.
bool is_misspelling(std::string_view key, std::string_view known) {
  const std::size_t shorter = std::min(key.size(), known.size());
  const std::size_t longer = std::max(key.size(), known.size());
  std::size_t front = 0, back = 0;
  while (front < shorter && key[front] == known[front]) ++front;
  while (back < shorter - front && key[key.size() - 1 - back] == known[known.size() - 1 - back])
    ++back;
  return front + back + 2 >= longer;
}

/// A key from the file, printable, as a token of a JSON pointer.
std::string printable_token(const std::string& key) {
  const std::string quoted = shown(json(pointer_token(key)));
  return quoted.ends_with('"') ? quoted.substr(1, quoted.size() - 2) : quoted.substr(1);
}

}  // namespace

std::vector<Diagnostic> ConfigReader::warnings_about_unknown_keys() const {
  constexpr std::size_t kMostWarnings = 8;
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  std::vector<std::string> absent;  // a misspelled key leaves the right one out
  std::copy_if(known.begin(), known.end(), std::back_inserter(absent),
               [&](const std::string& key) { return !object_.contains(key); });
  std::vector<Diagnostic> warnings = inner_warnings_;
  std::size_t left_out = 0;
  for (const auto& [key, value] : object_.items()) {
    if (asked_.contains(key) || is_irrelevant_config_key(key)) continue;
    if (warnings.size() == kMostWarnings) {
      left_out += is_off(value) ? 0 : 1;
      continue;
    }
    const std::vector<std::string> near = nearest_names(key, absent, 1);
    if (is_off(value) && (near.empty() || !is_misspelling(key, near.front()))) continue;
    const std::string name = printable_token(key);
    warnings.push_back(
        {where_of(name), fmt::format("ignoring unknown key '{}' with value {}", name, shown(value)),
         near.empty() ? fmt::format("remove it or check its spelling; known keys: {}",
                                    fmt::join(known, ", "))
                      : fmt::format("did you mean '{}'?", near.front())});
  }
  if (left_out > 0)
    warnings.push_back({where_, fmt::format("ignoring {} more unknown keys", left_out), ""});
  return warnings;
}

}  // namespace meshwright

#include "models/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace meshwright {
namespace {

using nlohmann::json;

/// Line and column, from 1, of a position in the text.
std::pair<std::size_t, std::size_t> line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  return {line, before.size() - line_start + 1};
}

/// The parser's own words behind its "[...] parse error at line 1, column 2: " prefix; printable.
std::string reason_of(const json::parse_error& error) {
  std::string text = error.what();
  const std::size_t column = text.find("column ");
  const std::size_t colon = text.find(": ", column == std::string::npos ? 0 : column);
  if (colon != std::string::npos) text.erase(0, colon + 2);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  return text;
}

/// The integer, if it is one that fits into 64 bits.
std::optional<std::int64_t> whole_number(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

std::string_view kind_of(const json& value) {
  if (value.is_string()) return " (a string)";
  if (value.is_boolean()) return " (a boolean)";
  if (value.is_array()) return " (an array)";
  if (value.is_object()) return " (an object)";
  if (value.is_number_float()) return " (not a whole number)";
  return "";
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
                      fmt::format("not valid JSON: {}", reason_of(error)),
                      "a model is a HuggingFace config.json"});
  } catch (const json::out_of_range& error) {  // a number such as 1e999
    throw InputError(
        {config.where, "a number is out of range", "a model is a HuggingFace config.json"});
  }
  if (!parsed.is_object())
    throw InputError({fmt::format("{}#", config.where),
                      fmt::format("is {}, not an object", shown(parsed)),
                      "a model is a HuggingFace config.json"});
  return parsed;
}

const json* ConfigReader::find(std::string_view key) const {
  const auto it = object_.find(std::string(key));
  return it == object_.end() ? nullptr : &*it;
}

bool ConfigReader::has(std::string_view key) const {
  const json* value = find(key);
  return value != nullptr && !value->is_null();
}

std::string ConfigReader::where_of(std::string_view key) const {
  return fmt::format("{}/{}", where_, key);
}

void ConfigReader::complain(std::string_view key, std::string what, std::string hint) {
  complaints_.push_back({where_of(key), std::move(what), std::move(hint)});
}

void ConfigReader::throw_complaints() const {
  if (!complaints_.empty()) throw InputError(complaints_);
}

void ConfigReader::refuse_whole_number(std::string_view key, const json& value, std::int64_t least,
                                       std::int64_t most) {
  complain(key, fmt::format("{} is {}{}", key, shown(value), kind_of(value)),
           fmt::format("write a whole number from {} to {}", least, most));
}

std::int64_t ConfigReader::dimension(std::string_view key, std::int64_t absent, std::int64_t most) {
  const json* value = find(key);
  if (value == nullptr) return absent;
  const std::optional<std::int64_t> number = whole_number(*value);
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

std::int64_t ConfigReader::count(std::string_view key, std::int64_t absent, std::int64_t most) {
  const json* value = find(key);
  if (value == nullptr) return absent;
  if (value->is_null()) return 0;
  const std::optional<std::int64_t> number = whole_number(*value);
  if (number && *number >= 0 && *number <= most) return *number;
  refuse_whole_number(key, *value, 0, most);
  return 0;
}

bool ConfigReader::flag(std::string_view key, bool absent) {
  const json* value = find(key);
  if (value == nullptr || value->is_null()) return absent;
  if (value->is_boolean()) return value->get<bool>();
  complain(key, fmt::format("{} is {}", key, shown(*value)), "write true or false");
  return absent;
}

double ConfigReader::dropout(std::string_view key, double absent) {
  const json* value = find(key);
  if (value == nullptr || value->is_null()) return absent;
  const double probability = value->is_number() ? value->get<double>() : -1;
  if (probability >= 0 && probability < 1) return probability;
  complain(key, fmt::format("{} is {}", key, shown(*value)),
           "write a probability, at least 0 and less than 1");
  return absent;
}

std::string ConfigReader::choice(std::string_view key, const std::string& absent,
                                 const std::vector<std::string>& allowed) {
  const json* value = find(key);
  if (value == nullptr || value->is_null()) return absent;
  const std::string text = value->is_string() ? value->get<std::string>() : "";
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return text;
  complain(key, fmt::format("{} is {}", key, shown(*value)), suggest(text, allowed));
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
    complain(key, fmt::format("{} is {}", key, shown(*value)), "write an array of strings");
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
    complain(key, fmt::format("{} is {}", key, shown(*value)),
             fmt::format("write an array of whole numbers from 0 to {}", most));
    return std::vector<std::int64_t>{};
  };
  if (!value->is_array()) return refuse();
  for (const json& item : *value) {
    const std::optional<std::int64_t> number = whole_number(item);
    if (!number || *number < 0 || *number > most) return refuse();
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace meshwright

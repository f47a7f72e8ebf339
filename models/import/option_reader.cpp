#include "models/import/option_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/import/import_lines.hpp"
#include "models/text/printable_text.hpp"

namespace meshwright {
namespace {

std::string hint_for(std::string_view value) {
  if (value.starts_with("$"))
    return fmt::format("the file does not set {}: replace it by its value", value);
  return "";
}

}  // namespace

OptionReader::OptionReader(std::span<const ShellWord> words, std::string file)
    : file_(std::move(file)) {
  Option* current = nullptr;
  for (const ShellWord& word : words) {
    if (!word.text.starts_with("--") || word.text.size() == 2) {
      if (current != nullptr) current->values.push_back(word.text);
      continue;
    }
    const std::size_t equals = word.text.find('=');
    std::string name = word.text.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::replace(name.begin(), name.end(), '_', '-');
    if (!options_.contains(name)) order_.push_back(name);
    current = &(options_[name] = {.values = {}, .line = word.line});
    if (equals != std::string::npos) current->values.push_back(word.text.substr(equals + 1));
  }
}

const OptionReader::Option* OptionReader::find(std::string_view name) {
  asked_.emplace(name);
  const auto found = options_.find(name);
  return found == options_.end() ? nullptr : &found->second;
}

std::string OptionReader::where(std::string_view name) const {
  const auto found = options_.find(name);
  if (found == options_.end()) return fmt::format("{}: --{}", file_, name);
  return fmt::format("{}:{}: --{}", file_, found->second.line, name);
}

void OptionReader::complain(std::string_view name, std::string what, std::string hint) {
  complaints_.push_back({where(name), std::move(what), std::move(hint)});
}

bool OptionReader::has(std::string_view name) { return find(name) != nullptr; }

std::string OptionReader::text(std::string_view name, const std::string& absent) {
  const Option* option = find(name);
  if (option == nullptr) return absent;
  if (!option->values.empty()) return option->values.front();
  complain(name, "missing value", "");
  return absent;
}

std::vector<std::string> OptionReader::list(std::string_view name) {
  const Option* option = find(name);
  return option == nullptr ? std::vector<std::string>() : option->values;
}

std::int64_t OptionReader::count(std::string_view name, std::int64_t absent, std::int64_t least,
                                 std::int64_t most) {
  if (find(name) == nullptr) return absent;
  const std::string value = text(name);
  const std::optional<std::int64_t> number = whole_number(value);
  if (number && *number >= least && *number <= most) return *number;
  if (!value.empty())
    complain(name,
             fmt::format("invalid value '{}': expected a whole number from {} to {}",
                         printable_text(value), least, most),
             hint_for(value));
  return absent;
}

std::optional<std::int64_t> OptionReader::optional_count(std::string_view name) {
  if (!has(name)) return std::nullopt;
  return count(name, 1);
}

std::int64_t OptionReader::required_count(std::string_view name) {
  if (has(name)) return count(name, 1);
  const std::vector<std::string> nearest = nearest_names(name, order_, 1);
  complain(name, "missing option",
           nearest.empty()
               ? "add it to the file"
               : fmt::format("add it to the file; did you mean '--{}'?", nearest.front()));
  return 1;
}

double OptionReader::number(std::string_view name, double absent) {
  if (find(name) == nullptr) return absent;
  const std::string value = text(name);
  if (const std::optional<double> number = decimal_number(value); number && *number >= 0)
    return *number;
  if (!value.empty())
    complain(name, fmt::format("invalid value '{}': expected a number", printable_text(value)),
             hint_for(value));
  return absent;
}

std::size_t OptionReader::choice(std::string_view name, const std::vector<std::string>& words,
                                 std::size_t absent) {
  if (find(name) == nullptr) return absent;
  const std::string value = text(name);
  const auto found = std::find(words.begin(), words.end(), value);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  if (!value.empty())
    complain(name, fmt::format("invalid value '{}'", printable_text(value)), suggest(value, words));
  return absent;
}

std::vector<std::string> OptionReader::unused() const {
  std::vector<std::string> names;
  for (const std::string& name : order_)
    if (!asked_.contains(name)) names.push_back(name);
  return names;
}

}  // namespace meshwright

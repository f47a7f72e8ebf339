#include "models/text/toml_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/parse_quantity.hpp"
#include "models/text/printable_text.hpp"

namespace meshwright {
namespace {

/// The value as messages show it.
std::string describe_node(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  if (const auto* text = node.as_string())
    return fmt::format("\"{}\"", printable_text(text->get()));
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return "a date or time";
}

std::string place(const std::string& file, const toml::source_region& region) {
  return fmt::format("{}:{}:{}", region.path ? *region.path : file,
                     std::max<std::uint32_t>(region.begin.line, 1),
                     std::max<std::uint32_t>(region.begin.column, 1));
}

/// Parser and tables of the library recurse once per part of a dotted key and set no limit to it.
constexpr std::size_t kMostKeyParts = 64;

/// Position after the string that starts at `begin`; the end of the text if it is not closed.
std::size_t skip_string(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const std::string three(3, quote);
  const bool is_multiline = text.substr(begin).starts_with(three);
  const std::string_view closing = std::string_view(three).substr(0, is_multiline ? 3 : 1);
  for (std::size_t i = begin + closing.size(); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (text.substr(i).starts_with(closing) || (text[i] == '\n' && !is_multiline)) {
      return std::min(i + closing.size(), text.size());
    }
  }
  return text.size();
}

/// Counts the dots between keys, also those of the inline tables around a key.
void check_key_depth(std::string_view text, const std::string& where) {
  std::vector<std::size_t> outer{0};  // dots before each open brace
  std::size_t dots = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = skip_string(text, i);
      continue;
    }
    if (c == '.' && ++dots >= kMostKeyParts)
      throw InputError(
          {fmt::format("{}:{}", where, 1 + std::ranges::count(text.substr(0, i), '\n')),
           fmt::format("key with more than {} parts", kMostKeyParts), "use fewer nested tables"});
    if (c == '{') {
      outer.push_back(dots);
    } else if (c == '}' && outer.size() > 1) {
      outer.pop_back();
      dots = outer.back();
    } else if (c == '\n' || c == ',' || c == '[') {
      dots = outer.back();
    }
    i = c == '#' ? std::min(text.find('\n', i), text.size()) : i + 1;
  }
}

}  // namespace

toml::table parse_toml(const NamedText& source, std::string_view noun) {
  check_key_depth(source.text, source.where);
  try {
    return toml::parse(std::string_view(source.text), std::string_view(source.where));
  } catch (const toml::parse_error& error) {
    throw InputError({place(source.where, error.source()),
                      fmt::format("invalid TOML: {}",
                                  printable_text(error.description(), std::string_view::npos)),
                      fmt::format("pass a {} file (TOML)", noun)});
  }
}

std::string place_of(const toml::node& node, const std::string& file) {
  return place(file, node.source());
}

std::string TomlFindings::where(const toml::node& node) const { return place_of(node, file); }

std::string TomlReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const toml::node* TomlReader::find(std::string_view key) {
  asked_.emplace_back(key);
  return table_.get(key);
}

const toml::node* TomlReader::find_required(std::string_view key, std::string_view example) {
  const toml::node* node = find(key);
  if (node == nullptr)
    findings_.complaints.push_back({findings_.where(table_),
                                    fmt::format("missing key '{}'", path_of(key)),
                                    fmt::format("add {} = {}", key, example)});
  return node;
}

std::string TomlReader::invalid_value(std::string_view key, const toml::node& node,
                                      std::string_view expected) const {
  return fmt::format("invalid value {} for '{}': expected {}", describe_node(node), path_of(key),
                     expected);
}

void TomlReader::complain(std::string_view key, std::string what, std::string hint) {
  const toml::node* node = table_.get(key);
  findings_.complaints.push_back(
      {findings_.where(node == nullptr ? table_ : *node), std::move(what), std::move(hint)});
}

/// Errors of `parse` are collected; a value without a unit is an error that shows one with a unit.
template <class Quantity>
std::optional<Quantity> TomlReader::quantity(std::string_view key, const toml::node* node,
                                             std::string_view unit, Parse<Quantity> parse) {
  if (node == nullptr) return std::nullopt;
  figures_.emplace_back(key);
  if (const auto* text = node->as_string()) {
    try {
      return parse(text->get(), findings_.where(*node));
    } catch (const InputError& error) {
      for (const Diagnostic& problem : error.diagnostics()) findings_.complaints.push_back(problem);
      return Quantity(1);
    }
  }
  const std::string shown = describe_node(*node);
  if (node->is_number())
    complain(key, fmt::format("missing unit in '{} = {}'", path_of(key), shown),
             fmt::format("write a string with a unit, such as \"{} {}\"", shown, unit));
  else
    complain(key, invalid_value(key, *node, "a quantity"),
             fmt::format("write a string with a number and a unit, such as \"1 {}\"", unit));
  return std::nullopt;
}

Bytes TomlReader::bytes(std::string_view key) {
  return quantity(key, find_required(key, "\"80 GiB\""), "GiB", parse_bytes).value_or(Bytes(1));
}

Bytes TomlReader::bytes(std::string_view key, Bytes absent) {
  return find(key) == nullptr ? absent : bytes(key);
}

BytesPerSecond TomlReader::bandwidth(std::string_view key) {
  return quantity(key, find_required(key, "\"300 GB/s\""), "GB/s", parse_bandwidth)
      .value_or(BytesPerSecond(1));
}

Seconds TomlReader::seconds(std::string_view key) {
  return quantity(key, find_required(key, "\"5 us\""), "us", parse_seconds).value_or(Seconds(1));
}

Seconds TomlReader::seconds(std::string_view key, Seconds absent) {
  return find(key) == nullptr ? absent : seconds(key);
}

std::optional<FlopsPerSecond> TomlReader::flop_rate(std::string_view key) {
  return quantity(key, find(key), "TFLOP/s", parse_flop_rate);
}

std::optional<Watts> TomlReader::power(std::string_view key) {
  return quantity(key, find(key), "W", parse_power);
}

std::optional<DollarsPerHour> TomlReader::price(std::string_view key) {
  return quantity(key, find(key), "USD", parse_price);
}

std::string TomlReader::text(std::string_view key) {
  const toml::node* node = find_required(key, "\"name\"");
  return node == nullptr ? "" : text(key, "");
}

std::string TomlReader::text(std::string_view key, const std::string& absent) {
  const toml::node* node = find(key);
  if (node == nullptr) return absent;
  if (const auto* value = node->as_string()) return value->get();
  complain(key, invalid_value(key, *node, "a string"), "put the text in quotes");
  return absent;
}

std::size_t TomlReader::choice(std::string_view key, const std::vector<std::string>& names,
                               std::size_t absent) {
  const toml::node* node = find(key);
  if (node == nullptr) return absent;
  const auto* value = node->as_string();
  const std::string text = value ? value->get() : "";
  const auto known = std::find(names.begin(), names.end(), text);
  if (known != names.end()) return static_cast<std::size_t>(known - names.begin());
  complain(key, fmt::format("invalid value {} for '{}'", describe_node(*node), path_of(key)),
           suggest(text, names));
  return absent;
}

std::optional<std::vector<std::string>> TomlReader::words(std::string_view key,
                                                          const std::vector<std::string>& names) {
  const toml::node* node = find(key);
  if (node == nullptr) return std::nullopt;
  figures_.emplace_back(key);
  std::vector<std::string> found;
  const toml::array* items = node->as_array();
  if (items == nullptr) {
    complain(key, invalid_value(key, *node, "an array"),
             fmt::format("write {} = [\"{}\"]", key, names.front()));
    return found;
  }
  for (const toml::node& item : *items) {
    const auto* text = item.as_string();
    const auto* number = item.as_integer();
    std::string word = text != nullptr     ? text->get()
                       : number != nullptr ? std::to_string(number->get())
                                           : std::string();
    const bool is_known = std::find(names.begin(), names.end(), word) != names.end();
    const bool is_new = std::find(found.begin(), found.end(), word) == found.end();
    if (is_known && is_new)
      found.push_back(std::move(word));
    else
      findings_.complaints.push_back(
          {findings_.where(item),
           fmt::format("{} value {} in '{}'", is_known ? "duplicate" : "invalid",
                       describe_node(item), path_of(key)),
           is_known ? "remove it" : suggest(word, names)});
  }
  return found;
}

bool TomlReader::flag(std::string_view key, bool absent) {
  const toml::node* node = find(key);
  if (node == nullptr) return absent;
  if (const auto* value = node->as_boolean()) return value->get();
  complain(key, invalid_value(key, *node, "true or false"), "");
  return absent;
}

int TomlReader::whole_number(std::string_view key, int least, int most, std::optional<int> absent) {
  const toml::node* node = absent ? find(key) : find_required(key, std::to_string(least));
  if (node == nullptr) return absent.value_or(least);
  figures_.emplace_back(key);
  const auto* value = node->as_integer();
  if (value && value->get() >= least && value->get() <= most) return static_cast<int>(value->get());
  const std::string expected =
      least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  if (value)
    complain(key,
             fmt::format("'{} = {}' is out of range: expected {}", path_of(key),
                         describe_node(*node), expected),
             "");
  else
    complain(key,
             fmt::format("invalid value {} for '{}': expected a whole number from {}",
                         describe_node(*node), path_of(key), expected),
             "");
  return least;
}

double TomlReader::number(std::string_view key, double most, double absent) {
  return number_if([=](double v) { return v > 0 && v <= most; }, key, absent,
                   fmt::format("greater than 0 and at most {}", most));
}

double TomlReader::number(std::string_view key, double least, double most, double absent) {
  return number_if([=](double v) { return v >= least && v <= most; }, key, absent,
                   fmt::format("between {} and {}", least, most));
}

template <class IsValid>
double TomlReader::number_if(IsValid is_valid, std::string_view key, double absent,
                             std::string_view expected) {
  const toml::node* node = find(key);
  if (node == nullptr) return absent;
  figures_.emplace_back(key);
  const std::optional<double> value =
      node->is_number() ? node->value<double>() : std::optional<double>();
  if (value && is_valid(*value)) return *value;
  complain(key,
           fmt::format("'{}' must be {}, got {}", path_of(key), expected, describe_node(*node)),
           "");
  return absent;
}

bool TomlReader::has(std::string_view key) { return find(key) != nullptr; }

const toml::table* TomlReader::find_table(std::string_view key, bool required,
                                          const std::string& hint) {
  const toml::node* node = required ? find_required(key, "{...}") : find(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) complain(key, invalid_value(key, *node, "a table"), hint);
  return node->as_table();
}

void TomlReader::table(std::string_view key, bool required,
                       const std::function<void(TomlReader&)>& read) {
  const toml::table* inner =
      find_table(key, required, fmt::format("start the table with [{}]", path_of(key)));
  if (inner == nullptr) return;
  TomlReader reader(*inner, path_of(key), findings_);
  read(reader);
  reader.finish();
}

void TomlReader::tables(std::string_view key,
                        const std::function<void(const std::string&, TomlReader&)>& read) {
  const toml::table* inner =
      find_table(key, true, fmt::format("start each entry with [{}.NAME]", path_of(key)));
  if (inner == nullptr) return;
  TomlReader entries(*inner, path_of(key), findings_);
  for (const auto& [name, value] : *inner)
    entries.table(name.str(), true,
                  [&, entry = std::string(name.str())](TomlReader& r) { read(entry, r); });
}

void TomlReader::array(std::string_view key, const std::function<void(TomlReader&)>& read) {
  const toml::node* node = find_required(key, "[...]");
  if (node == nullptr) return;
  const toml::array* items = node->as_array();
  const bool are_tables = items != nullptr && items->is_homogeneous(toml::node_type::table);
  if (!are_tables)
    return complain(key,
                    fmt::format("expected an array of tables at '{}', got {}", path_of(key),
                                describe_node(*node)),
                    fmt::format("start each entry with [[{}]]", path_of(key)));
  for (std::size_t i = 0; i < items->size(); ++i) {
    TomlReader reader(*(*items)[i].as_table(), fmt::format("{}[{}]", path_of(key), i), findings_);
    read(reader);
    reader.finish();
  }
}

void TomlReader::read_sources() {
  if (const toml::node* all = find("source")) {
    if (const auto* value = all->as_string())
      for (const std::string& key : figures_) findings_.sources[path_of(key)] = value->get();
    else
      complain("source", invalid_value("source", *all, "a string"),
               "write where the values of this table come from");
  }
  const toml::node* each = find("sources");
  if (each == nullptr) return;
  const toml::table* entries = each->as_table();
  if (entries == nullptr)
    return complain("sources", invalid_value("sources", *each, "a table"),
                    "write sources.KEY = \"where the value comes from\"");
  for (const auto& [name, value] : *entries) {
    const std::string key(name.str());
    const bool known = std::find(asked_.begin(), asked_.end(), key) != asked_.end();
    if (!known && table_.contains(key)) continue;  // reported as an unknown key
    const auto* text = value.as_string();
    if (known && text != nullptr)
      findings_.sources[path_of(key)] = text->get();
    else
      findings_.complaints.push_back(
          {findings_.where(value),
           known ? fmt::format("invalid source {} of '{}': expected a string", describe_node(value),
                               path_of(key))
                 : fmt::format("source of unknown key '{}'", printable_text(path_of(key))),
           known ? "write where the value comes from" : suggest(key, asked_)});
  }
}

void TomlReader::complain_about_unknown_keys() {
  std::sort(asked_.begin(), asked_.end());
  asked_.erase(std::unique(asked_.begin(), asked_.end()), asked_.end());
  for (const auto& [name, value] : table_) {
    const std::string key(name.str());
    if (std::binary_search(asked_.begin(), asked_.end(), key)) continue;
    const toml::source_region& at = name.source();
    findings_.complaints.push_back({place(findings_.file, at.begin.line == 0 ? value.source() : at),
                                    fmt::format("unknown key '{}'", printable_text(path_of(key))),
                                    suggest(key, asked_)});
  }
}

void TomlReader::finish() {
  read_sources();
  complain_about_unknown_keys();
}

std::map<std::string, std::string> read_toml(const toml::table& root, const std::string& where,
                                             const std::function<void(TomlReader&)>& read) {
  TomlFindings findings{.file = where, .complaints = {}, .sources = {}};
  TomlReader reader(root, "", findings);
  read(reader);
  reader.finish();
  throw_if_any(findings.complaints);
  return std::move(findings.sources);
}

}  // namespace meshwright

#include "models/text/embedded_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "models/text/toml_text.hpp"

namespace meshwright {
namespace {

/// A value that is not a table, with its dotted key.
struct Leaf {
  std::string key;
  const toml::node* node;
};

void collect_leaves(const toml::table& table, const std::string& prefix,
                    std::vector<Leaf>& leaves) {
  for (const auto& [name, value] : table) {
    const std::string key = prefix + key_text(name.str());
    const toml::table* inner = value.as_table();
    if (inner != nullptr && !inner->empty())
      collect_leaves(*inner, key + ".", leaves);
    else
      leaves.push_back({key, &value});
  }
}

/// On one line; tables as inline tables.
std::string value_text(const toml::node& node) {
  std::string text;
  if (const toml::table* table = node.as_table()) {
    for (const auto& [key, value] : *table)
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key_text(key.str()),
                          value_text(value));
    return "{" + text + "}";
  }
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& item : *array) text += (text.empty() ? "" : ", ") + value_text(item);
    return "[" + text + "]";
  }
  if (const auto* value = node.as_string()) return toml_quoted(value->get());
  if (const auto* value = node.as_floating_point()) {
    text = fmt::format("{}", value->get());
    return text.find_first_of(".ein") == std::string::npos ? text + ".0" : text;
  }
  std::ostringstream other;
  node.visit([&other](const auto& value) { other << value; });
  return other.str();
}

}  // namespace

std::string text_with_positions(const toml::table& table) {
  std::vector<Leaf> leaves;
  collect_leaves(table, "", leaves);
  const auto position = [](const Leaf& leaf) {
    const toml::source_position begin = leaf.node->source().begin;
    return std::pair(begin.line, begin.column);
  };
  std::stable_sort(leaves.begin(), leaves.end(),
                   [&](const Leaf& a, const Leaf& b) { return position(a) < position(b); });
  std::string text;
  std::uint32_t line = 1;
  for (const Leaf& leaf : leaves) {
    const auto [wanted_line, column] = position(leaf);
    for (; line < wanted_line; ++line) text += '\n';
    std::string entry = leaf.key + " = ";
    if (entry.size() + 1 < column) entry.append(column - 1 - entry.size(), ' ');
    text += entry + value_text(*leaf.node) + '\n';
    ++line;
  }
  return text;
}

std::string json_text_of(const toml::table& table) {
  std::ostringstream text;
  text << toml::json_formatter(table);
  return text.str();
}

JsonValue json_value_of(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return {value->get()};
  if (const auto* value = node.as_integer()) return {value->get()};
  if (const auto* value = node.as_floating_point()) return {value->get()};
  if (const auto* value = node.as_string()) return {value->get()};
  if (const toml::array* array = node.as_array()) {
    JsonArray items;
    for (const toml::node& item : *array) items.push_back(json_value_of(item));
    return {std::move(items)};
  }
  if (const toml::table* table = node.as_table()) {
    JsonObject members;
    for (const auto& [key, value] : *table)
      members.push_back({std::string(key.str()), json_value_of(value)});
    return {std::move(members)};
  }
  return {};
}

}  // namespace meshwright

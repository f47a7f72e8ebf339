#include "cli/terminal/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

std::size_t width_of(std::string_view utf8) {
  const auto starts_a_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  };
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), starts_a_character));
}

void append_line(std::string& text, const Table& table, const std::vector<std::size_t>& widths,
                 const std::vector<std::string>& cells) {
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const std::string padding(widths[c] - width_of(cells[c]), ' ');
    if (c > 0) text += "  ";
    text += table.columns[c].align == Align::kRight ? padding + cells[c] : cells[c] + padding;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

constexpr std::string_view kIndent = "  ";

}  // namespace

std::string to_text(const Table& table) {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (const TableColumn& column : table.columns) {
    titles.push_back(column.title);
    widths.push_back(width_of(column.title));
  }
  for (const std::vector<std::string>& row : table.rows) {
    MW_CHECK(row.size() == widths.size());
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  append_line(text, table, widths, titles);
  for (const std::vector<std::string>& row : table.rows) append_line(text, table, widths, row);
  return text;
}

void append_columns(Table& table, const Table& more) {
  if (more.columns.empty()) return;
  if (table.columns.empty()) table.rows.resize(more.rows.size());
  MW_CHECK(more.rows.size() == table.rows.size());
  table.columns.insert(table.columns.end(), more.columns.begin(), more.columns.end());
  for (std::size_t r = 0; r < more.rows.size(); ++r)
    table.rows[r].insert(table.rows[r].end(), more.rows[r].begin(), more.rows[r].end());
}

std::string to_indented_text(const Table& table) {
  std::string text;
  std::istringstream lines(to_text(table));
  for (std::string line; std::getline(lines, line);) text.append(kIndent).append(line) += '\n';
  return text;
}

std::string to_text(const std::vector<NamedValue>& list) {
  std::size_t width = 0;
  for (const NamedValue& entry : list) width = std::max(width, width_of(entry.name));
  std::string text;
  for (const NamedValue& entry : list) {
    const std::string padding(width - width_of(entry.name), ' ');
    text.append(kIndent).append(entry.name).append(padding).append("  ").append(entry.value) +=
        '\n';
  }
  return text;
}

std::string percent(double share) {
  constexpr double kHundred = 100;
  return fmt::format("{:.1f} %", kHundred * share);
}

std::string grouped(std::int64_t count) {
  std::string text = std::to_string(count);
  const int first_digit = text.front() == '-' ? 1 : 0;
  for (int i = static_cast<int>(text.size()) - 3; i > first_digit; i -= 3)
    text.insert(static_cast<std::size_t>(i), 1, ',');
  return text;
}

}  // namespace meshwright

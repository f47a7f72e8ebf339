/// Text tables: columns as wide as their widest cell, separated by two spaces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace meshwright {

enum class Align : std::uint8_t { kLeft, kRight };

struct TableColumn {
  std::string title;
  Align align = Align::kRight;
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  ///< one cell per column
};

inline TableColumn left_aligned(std::string title) { return {std::move(title), Align::kLeft}; }
/// `columns`: titles of right-aligned columns, or left_aligned() ones.
template <class... Columns>
Table empty_table(const Columns&... columns) {
  return {.columns = {TableColumn{columns}...}, .rows = {}};
}

/// Appends the columns of a table with the same number of rows. Either may have no columns.
void append_columns(Table& table, const Table& more);

/// Title line and one line per row, each ended by '\n', without trailing spaces. Cells are UTF-8;
/// every code point counts as one character wide.
std::string to_text(const Table& table);
/// The same, with every line indented by two spaces.
std::string to_indented_text(const Table& table);

/// The same as a table of GitHub-flavored Markdown.
std::string to_markdown(const Table& table);

/// Text for the contents of HTML elements and for quoted attributes.
std::string escaped_for_html(std::string_view text);
/// The same as an HTML table; class "left" on left-aligned cells.
std::string to_html(const Table& table);

struct NamedValue {
  std::string name, value;
};
/// One line per entry, indented by two spaces. Values are aligned, two spaces after the longest
/// name.
std::string to_text(const std::vector<NamedValue>& list);
/// A table with a row per entry, without a title line.
std::string to_html(const std::vector<NamedValue>& list);

/// "12.3 %"
std::string percent(double share);
/// "1,234,567"
std::string grouped(std::int64_t count);

}  // namespace meshwright

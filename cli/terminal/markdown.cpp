/// Documents and tables as GitHub-flavored Markdown (github.github.com/gfm).
#include <algorithm>
#include <cctype>
#include <sstream>

#include "cli/terminal/document.hpp"

namespace meshwright {
namespace {

/// Characters that start markup anywhere in a line. A backslash makes them ordinary.
constexpr std::string_view kMarkup = "\\`*_<&[|";
/// At the start of a line: headings, lists, quotes and rules.
constexpr std::string_view kMarkupAtStart = "#+->=~";

std::string_view trimmed_cell(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// A cell is one line.
std::string escaped_for_markdown(std::string_view text) {
  std::string result;
  for (const char c : trimmed_cell(text)) {
    if (kMarkup.find(c) != std::string_view::npos) result += '\\';
    result += c == '\n' || c == '\r' ? ' ' : c;
  }
  return result;
}

/// "1. text" would be an item of a list.
std::string markdown_line(std::string_view line) {
  std::string text = escaped_for_markdown(line);
  if (text.empty()) return text;
  if (kMarkupAtStart.find(text.front()) != std::string_view::npos) return "\\" + text;
  const auto end = std::find_if_not(text.begin(), text.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
  if (end != text.begin() && end != text.end() && (*end == '.' || *end == ')'))
    text.insert(end, '\\');
  return text;
}

/// Lines of a paragraph end with a backslash: a line break.
std::string markdown_paragraphs(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string shown = markdown_line(line);
    if (!shown.empty() && !result.empty()) result += is_inside ? "\\\n" : "\n\n";
    result += shown;
    is_inside = !shown.empty();
  }
  return result.empty() ? "" : result + "\n";
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + escaped_for_markdown(cell) + " |";
  return text + "\n";
}

struct MarkdownWriter {
  std::string operator()(const std::string& text) const { return markdown_paragraphs(text); }
  std::string operator()(const Table& table) const { return to_markdown(table); }
  std::string operator()(const IndentedTable& block) const { return to_markdown(block.table); }
  std::string operator()(const std::vector<NamedValue>& list) const {
    Table table = empty_table(left_aligned("name"), left_aligned("value"));
    for (const NamedValue& entry : list) table.rows.push_back({entry.name, entry.value});
    return to_markdown(table);
  }
};

}  // namespace

std::string to_markdown(const Table& table) {
  std::vector<std::string> titles;
  std::string rule = "|";
  for (const TableColumn& column : table.columns) {
    titles.push_back(column.title);
    rule += column.align == Align::kLeft ? "---|" : "---:|";
  }
  std::string text = markdown_row(titles) + rule + "\n";
  for (const std::vector<std::string>& row : table.rows) text += markdown_row(row);
  return text;
}

std::string to_markdown(const Document& document) {
  std::string text;
  for (const Document::Block& block : document.blocks()) {
    const std::string part = std::visit(MarkdownWriter(), block);
    if (!part.empty()) text += (text.empty() ? "" : "\n") + part;
  }
  return text;
}

}  // namespace meshwright

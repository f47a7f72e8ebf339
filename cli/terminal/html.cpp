/// Documents, tables and lists as HTML.
#include <fmt/format.h>

#include <sstream>

#include "cli/terminal/document.hpp"

namespace meshwright {
namespace {

constexpr const char* kPageStyle =
    R"(:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1280px; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1em 0 }
th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap }
.left { text-align: left }
)";

/// A paragraph per group of lines.
std::string html_paragraphs(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool is_empty = line.find_first_not_of(' ') == std::string::npos;
    if (is_empty && is_inside) result += "</p>\n";
    if (!is_empty) result += (is_inside ? "<br>\n" : "<p>") + escaped_for_html(line);
    is_inside = !is_empty;
  }
  return is_inside ? result + "</p>\n" : result;
}

struct HtmlWriter {
  std::string operator()(const std::string& text) const { return html_paragraphs(text); }
  std::string operator()(const Table& table) const { return to_html(table); }
  std::string operator()(const IndentedTable& block) const { return to_html(block.table); }
  std::string operator()(const std::vector<NamedValue>& list) const { return to_html(list); }
};

}  // namespace

std::string escaped_for_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string to_html(const Table& table) {
  const auto cell = [&](std::string_view element, std::size_t column, const std::string& text) {
    const bool is_left = table.columns[column].align == Align::kLeft;
    return fmt::format("<{}{}>{}</{}>", element, is_left ? " class=\"left\"" : "",
                       escaped_for_html(text), element);
  };
  std::string text = "<table>\n<tr>";
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    text += cell("th", c, table.columns[c].title);
  for (const std::vector<std::string>& row : table.rows) {
    text += "</tr>\n<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) text += cell("td", c, row[c]);
  }
  return text + "</tr>\n</table>\n";
}

std::string to_html(const std::vector<NamedValue>& list) {
  std::string text = "<table>\n";
  for (const NamedValue& entry : list)
    text += fmt::format("<tr><th class=\"left\">{}</th><td class=\"left\">{}</td></tr>\n",
                        escaped_for_html(entry.name), escaped_for_html(entry.value));
  return text + "</table>\n";
}

std::string to_html_page(const Document& document, std::string_view title) {
  std::string body;
  for (const Document::Block& block : document.blocks()) body += std::visit(HtmlWriter(), block);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<title>{}</title>\n<style>\n{}</style>\n</head><body>\n{}</body></html>\n",
      escaped_for_html(title), kPageStyle, body);
}

}  // namespace meshwright

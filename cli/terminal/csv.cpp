/// Tables as comma-separated values (RFC 4180): lines end with CR LF, and quotes enclose cells with
/// commas, quotes or line breaks.
#include "cli/terminal/document.hpp"

namespace meshwright {
namespace {

std::string csv_cell_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell.append(c == '"' ? 2 : 1, c);
  return cell + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c)
    line += (c > 0 ? "," : "") + csv_cell_text(cells[c]);
  return line + "\r\n";
}

/// Spaces at the start of a name only indent text.
std::string without_indent(const std::string& name) {
  const std::size_t first = name.find_first_not_of(' ');
  return first == std::string::npos ? "" : name.substr(first);
}

struct CsvWriter {
  std::string operator()(const std::string&) const { return ""; }
  std::string operator()(const Table& table) const {
    std::vector<std::string> titles;
    for (const TableColumn& column : table.columns) titles.push_back(column.title);
    std::string text = csv_line(titles);
    for (const std::vector<std::string>& row : table.rows) text += csv_line(row);
    return text;
  }
  std::string operator()(const IndentedTable& block) const { return (*this)(block.table); }
  std::string operator()(const std::vector<NamedValue>& list) const {
    std::string text = csv_line({"name", "value"});
    for (const NamedValue& entry : list)
      text += csv_line({without_indent(entry.name), entry.value});
    return text;
  }
};

}  // namespace

std::string to_csv(const Document& document) {
  std::string text;
  for (const Document::Block& block : document.blocks()) {
    const std::string part = std::visit(CsvWriter(), block);
    if (!part.empty()) text += (text.empty() ? "" : "\r\n") + part;
  }
  return text;
}

}  // namespace meshwright

/// What a command prints: text, tables and lists in order. The formats of --format are written from
/// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/terminal/table.hpp"

namespace meshwright {

enum class DocumentFormat : std::uint8_t { kText, kMarkdown, kCsv, kJson, kHtml };

/// A table whose lines are indented by two spaces in text.
struct IndentedTable {
  Table table;
};
inline IndentedTable indented(Table table) { return {std::move(table)}; }

class Document {
 public:
  using Block = std::variant<std::string, Table, IndentedTable, std::vector<NamedValue>>;

  Document() = default;
  Document(std::string text) { add(std::move(text)); }
  Document(const char* text) : Document(std::string(text)) {}
  Document(Table table) { add(std::move(table)); }
  Document(IndentedTable table) { add(std::move(table)); }
  Document(std::vector<NamedValue> list) { add(std::move(list)); }

  /// Appends. Text is joined to text before it.
  Document& operator+=(Document more);
  friend Document operator+(Document first, Document second) {
    first += std::move(second);
    return first;
  }

  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  void add(Block block);

  std::vector<Block> blocks_;  ///< no two texts in a row
};

/// The texts as they are, and tables and lists with aligned columns.
std::string to_text(const Document& document);
/// GitHub-flavored Markdown.
std::string to_markdown(const Document& document);
/// The tables and lists by RFC 4180, separated by empty lines. Leaves out the texts.
std::string to_csv(const Document& document);
/// An HTML page that refers to no other file.
std::string to_html_page(const Document& document, std::string_view title);

/// All texts, without tables and lists.
std::string texts_of(const Document& document);

}  // namespace meshwright

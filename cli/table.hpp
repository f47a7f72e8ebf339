/// Text tables for people: columns as wide as their widest cell, two spaces between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace meshwright {

enum class Align : std::uint8_t { kLeft, kRight };

struct TableColumn {
  std::string title;
  Align align = Align::kRight;
};

struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;  ///< as many cells as columns in each
};

/// Title line and one line per row, each ended by '\n', no trailing spaces. Cells are UTF-8; one
/// code point is taken as one character wide.
std::string to_text(const Table& table);

}  // namespace meshwright

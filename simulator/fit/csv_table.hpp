/// CSV with a header line (RFC 4180). Untrusted input: sizes are limited.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

struct CsvTable {
  struct Row {
    int line = 0;
    std::vector<std::string> fields;  ///< one per column
  };
  std::string file;  ///< for messages
  std::map<std::string, std::size_t, std::less<>> columns;
  std::vector<Row> rows;

  bool has(std::string_view column) const { return columns.contains(column); }
  /// Empty if the column is absent.
  const std::string& text(const Row& row, std::string_view column) const;
};

/// InputError on an unclosed quote, a row with more or fewer fields than the header, or a limit:
/// 64 MiB, 1,000,000 rows, 100 columns, 4,096 characters per field.
CsvTable read_csv_table(std::string_view text, const std::string& file);

/// A finite number above zero, or InputError naming line and column.
double number_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column);
/// The same, or `absent` for an empty field or an absent column.
double number_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column,
                 double absent);

}  // namespace meshwright

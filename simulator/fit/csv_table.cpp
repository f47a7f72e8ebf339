#include "simulator/fit/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kLargestTable = std::size_t{64} << 20;
constexpr std::size_t kMostTableRows = 1'000'000, kMostColumns = 100, kLongestField = 4096;

/// Control characters as '?', at most 40 characters.
std::string printable_field(const std::string& text) {
  constexpr std::size_t kMost = 40;
  std::string out = text.substr(0, kMost);
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& file) : rest_(text) { table_.file = file; }

  CsvTable run() {
    if (rest_.size() > kLargestTable)
      throw InputError(
          {table_.file,
           fmt::format("file of {} bytes: expected at most {}", rest_.size(), kLargestTable), ""});
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);  // byte order mark
    read_header();
    while (!rest_.empty()) read_row();
    return std::move(table_);
  }

 private:
  [[noreturn]] void reject(int line, std::string what, std::string hint) const {
    throw InputError({fmt::format("{}:{}", table_.file, line), std::move(what), std::move(hint)});
  }

  void read_header() {
    const std::vector<std::string> names = read_fields();
    if (names.empty()) reject(1, "missing header line", "start with the names of the columns");
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!table_.columns.emplace(names[i], i).second)
        reject(1, fmt::format("column '{}' occurs twice", printable_field(names[i])),
               "remove one of them");
  }

  void read_row() {
    CsvTable::Row row{.line = line_, .fields = read_fields()};
    if (row.fields.empty()) return;  // a blank line
    if (row.fields.size() != table_.columns.size())
      reject(row.line,
             fmt::format("row of {} fields: expected {}, one per column", row.fields.size(),
                         table_.columns.size()),
             "quote fields that contain commas");
    if (table_.rows.size() >= kMostTableRows)
      reject(row.line, fmt::format("more than {} rows", kMostTableRows), "");
    table_.rows.push_back(std::move(row));
  }

  std::vector<std::string> read_fields() {
    std::vector<std::string> fields;
    const int first_line = line_;
    for (bool more = true; more;) {
      if (fields.size() >= kMostColumns)
        reject(first_line, fmt::format("more than {} columns", kMostColumns), "");
      fields.push_back(rest_.starts_with('"') ? quoted(first_line) : plain());
      if (fields.back().size() > kLongestField)
        reject(first_line,
               fmt::format("field of {} characters: expected at most {}", fields.back().size(),
                           kLongestField),
               "");
      more = rest_.starts_with(',');
      if (more) rest_.remove_prefix(1);
    }
    end_line(first_line);
    if (fields.size() == 1 && fields.front().empty()) fields.clear();
    return fields;
  }

  void end_line(int first_line) {
    if (rest_.starts_with('\r')) rest_.remove_prefix(1);
    if (rest_.empty()) return;
    if (!rest_.starts_with('\n'))
      reject(first_line, "text after a closing quote", "double the quotes inside a quoted field");
    rest_.remove_prefix(1);
    ++line_;
  }

  std::string plain() {
    const std::size_t end = std::min(rest_.find_first_of(",\r\n"), rest_.size());
    std::string field(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return field;
  }

  std::string quoted(int first_line) {
    std::string field;
    rest_.remove_prefix(1);
    for (;;) {
      if (rest_.empty()) reject(first_line, "missing closing quote", "");
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') {
        if (!rest_.starts_with('"')) return field;
        rest_.remove_prefix(1);
      }
      if (c == '\n') ++line_;
      field += c;
    }
  }

  std::string_view rest_;
  int line_ = 1;
  CsvTable table_;
};

}  // namespace

const std::string& CsvTable::text(const Row& row, std::string_view column) const {
  static const std::string kAbsent;
  const auto found = columns.find(column);
  return found == columns.end() ? kAbsent : row.fields[found->second];
}

CsvTable read_csv_table(std::string_view text, const std::string& file) {
  return TableReader(text, file).run();
}

double number_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  const std::string& text = table.text(row, column);
  const auto value = number_from_text<double>(text);
  if (value && std::isfinite(*value) && *value > 0) return *value;
  const std::string where = fmt::format("{}:{}", table.file, row.line);
  if (text.empty())
    throw InputError({where, fmt::format("missing value of '{}'", column),
                      fmt::format("add the column '{}'", column)});
  throw InputError({where,
                    fmt::format("invalid value '{}' for '{}': expected a positive number",
                                printable_field(text), column),
                    ""});
}

double number_in(const CsvTable& table, const CsvTable::Row& row, std::string_view column,
                 double absent) {
  return table.text(row, column).empty() ? absent : number_in(table, row, column);
}

}  // namespace meshwright

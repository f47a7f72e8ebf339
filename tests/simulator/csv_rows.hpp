/// Rows of a small comma-separated file in tests/simulator/data; '#' starts a comment line.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace meshwright::testing {

using CsvRow = std::map<std::string, std::string>;  ///< by column name

inline std::vector<std::string> split_at_commas(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

inline std::vector<CsvRow> csv_rows(const std::string& file) {
  std::string path = MESHWRIGHT_SOURCE_DIR "/tests/simulator/data/";
  path += file;
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error(path);
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> fields = split_at_commas(line);
    if (columns.empty()) {
      columns = fields;
      continue;
    }
    if (fields.size() != columns.size()) throw std::runtime_error(line);
    CsvRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < fields.size(); ++i) row[columns[i]] = fields[i];
  }
  return rows;
}

}  // namespace meshwright::testing

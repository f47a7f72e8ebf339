/// Tables under tests/core/schedule/data: comment lines, one header line, then rows of cells.
#pragma once

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/schedule/timing.hpp"

namespace meshwright {

using VectorRow = std::map<std::string, std::string>;

inline std::vector<VectorRow> read_vectors(const std::string& file) {
  std::ifstream in(std::string(MESHWRIGHT_SOURCE_DIR) + "/tests/core/schedule/data/" + file);
  std::vector<std::string> header;
  std::vector<VectorRow> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string> cells;
    std::istringstream split(line);
    for (std::string cell; std::getline(split, cell, ',');) cells.push_back(cell);
    if (header.empty()) {
      header = cells;
      continue;
    }
    VectorRow row;
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = cells.at(i);
    rows.push_back(row);
  }
  return rows;
}

/// Milliseconds with up to nine decimals, exactly.
inline Ticks milliseconds(const std::string& text) {
  constexpr double kTicksPerMillisecond = 1e9;
  return Ticks(static_cast<std::int64_t>(std::llround(std::stod(text) * kTicksPerMillisecond)));
}

/// Times of a row: tF, tB, tW per device, shared evenly by its chunks.
inline StageTimes times_of(const VectorRow& row, int devices, int chunks) {
  StageTimes times =
      uniform_times(devices * chunks, milliseconds(row.at("tF")) / chunks,
                    milliseconds(row.at("tB")) / chunks, milliseconds(row.at("tW")) / chunks);
  times.latency = milliseconds(row.at("tcomm"));
  return times;
}

}  // namespace meshwright

/// Results of `validate` as text, Markdown, JSON and CSV.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/terminal/document.hpp"
#include "cli/validation/run_errors.hpp"

namespace meshwright {

enum class TableStyle : std::uint8_t { kText, kMarkdown };

struct ValidationReportOptions {
  TableStyle style = TableStyle::kText;
  bool rows = false;  ///< one line per run
};

/// Errors by set, device and trainer and in total; memory; the largest misses with their likely
/// causes; traps and runs that cannot be simulated. Markdown: the tables only.
Document validation_text(std::span<const ComparedRun> runs, const ValidationReportOptions& options);
std::string validation_json(std::span<const ComparedRun> runs);
/// One line per run; times in seconds, memory in bytes, errors and shares as fractions.
std::string validation_csv(std::span<const ComparedRun> runs);

}  // namespace meshwright

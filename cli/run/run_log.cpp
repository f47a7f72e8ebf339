#include "cli/run/run_log.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run/run_input.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/formats/file.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {

double StepRates::tokens_per_second(const MeasuredStep& step) const {
  return static_cast<double>(tokens_per_step) / to_seconds(step.duration).value;
}

std::optional<double> StepRates::mfu(const MeasuredStep& step) const {
  if (peak <= FlopsPerSecond()) return std::nullopt;
  return ratio(model_flops_per_step / to_seconds(step.duration), peak);
}

StepRates step_rates(const Job& job) {
  const JobFacts facts = job_facts(job.file.plan.strategy, job.model, job.cluster);
  return {.tokens_per_step = facts.tokens_per_step,
          .model_flops_per_step = facts.model_flops_per_step,
          .peak = facts.device_peak * static_cast<double>(facts.job_ranks)};
}

void check_log(const std::string& file) {
  if (file == "-")
    throw UsageError({.where = "--log",
                      .what = "cannot be written to standard output, which has the results",
                      .hint = "use a file"});
  check_place_of("--log", file);
}

std::string log_line(std::int64_t step, const MeasuredStep& measured, const StepRates& rates) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const Json line{{"step", step},
                  {"loss", measured.loss},
                  {"validation_loss", or_null(measured.validation_loss)},
                  {"gradient_norm", or_null(measured.gradient_norm)},
                  {"lr", Json::parse(fmt::format("{}", measured.learning_rate))},  // shortest text
                  {"step_time_s", to_seconds(measured.duration).value},
                  {"tokens_per_s", rates.tokens_per_second(measured)},
                  {"mfu", or_null(rates.mfu(measured))},
                  {"peak_memory_bytes", measured.peak_memory.value}};
  return line.dump() + "\n";
}

std::string log_before(const std::string& log, std::int64_t step, const std::string& where) {
  std::string kept;
  std::istringstream lines(log);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool is_step = json.is_object() && json.contains("step") && json["step"].is_number();
    // A run that was killed may leave an incomplete last line.
    if (!is_step && lines.peek() == std::istringstream::traits_type::eof()) break;
    if (!is_step)
      throw InputError(Diagnostic{fmt::format("{}:{}", where, number), "not a line of a run's log",
                                  "use the log of the run to resume, or another file"});
    if (json["step"].get<std::int64_t>() < step) kept += line + "\n";
  }
  return kept;
}

RunLog::RunLog(const std::string& file, std::int64_t first_step) : file_(file) {
  if (file.empty()) return;
  std::error_code ignored;
  std::string kept;
  if (first_step > 0 && std::filesystem::is_regular_file(file, ignored))
    kept = log_before(read_file(file, kLargestTraceFile), first_step, file);
  write_file(file, kept);
  stream_.open(file, std::ios::app);
}

/// A failed write does not stop the run.
void RunLog::write(const std::string& line) {
  if (file_.empty()) return;
  stream_ << line << std::flush;
  if (stream_.good() || has_warned_) return;
  has_warned_ = true;
  print_to_stderr(fmt::format("warning: {}: cannot write the log\n", file_));
}

}  // namespace meshwright

#include "cli/run/tensorboard_log.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <utility>

#include "cli/run/run_input.hpp"
#include "cli/terminal/standard_streams.hpp"

namespace meshwright {
namespace {

namespace fs = std::filesystem;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Unique, and recognized by TensorBoard.
std::string file_name(double now) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host.front() = '\0';
  return fmt::format("events.out.tfevents.{:.0f}.{}.{}", now, host.data(), ::getpid());
}

}  // namespace

void check_tensorboard(const std::string& folder) {
  if (folder.empty()) return;
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    throw InputError(Diagnostic{"--tensorboard", fmt::format("'{}' is not a directory", folder),
                                "use a directory for event files"});
  check_folder_of("--tensorboard", fs::is_directory(folder, error) ? folder + "/" : folder);
}

ScalarEvent scalars_of(std::int64_t step, const MeasuredStep& measured, const StepRates& rates) {
  ScalarEvent event{.step = step, .scalars = {}};
  const auto add = [&](const char* tag, std::optional<double> value) {
    if (value) event.scalars.emplace_back(tag, static_cast<float>(*value));
  };
  add("loss/train", measured.loss);
  add("loss/validation", measured.validation_loss);
  add("gradient_norm", measured.gradient_norm);
  add("learning_rate", measured.learning_rate);
  add("step_time_s", to_seconds(measured.duration).value);
  add("tokens_per_s", rates.tokens_per_second(measured));
  add("mfu", rates.mfu(measured));
  add("peak_memory_bytes", static_cast<double>(measured.peak_memory.value));
  return event;
}

TensorBoardLog::TensorBoardLog(const std::string& folder, std::int64_t first_step) {
  if (folder.empty()) return;
  std::error_code failed;
  fs::create_directory(folder, failed);  // opening the file reports it
  const double now = seconds_since_1970();
  file_ = (fs::path(folder) / file_name(now)).string();
  stream_.open(file_, std::ios::binary);
  append(tfevents_header(now) + (first_step > 0 ? tfevents_restart(now, first_step) : ""));
}

void TensorBoardLog::write(ScalarEvent event) {
  event.wall_time_s = seconds_since_1970();
  if (!file_.empty()) append(tfevents_record(event));
}

/// A failed write does not stop the run.
void TensorBoardLog::append(const std::string& record) {
  stream_ << record << std::flush;
  if (stream_.good() || std::exchange(has_warned_, true)) return;
  print_to_stderr(fmt::format("warning: {}: cannot write events for TensorBoard\n", file_));
}

}  // namespace meshwright

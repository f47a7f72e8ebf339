#include "cli/run/run_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <utility>

#include "cli/terminal/standard_streams.hpp"
#include "core/formats/file.hpp"

namespace meshwright {

std::string clock_text(std::chrono::duration<double> time) {
  constexpr long long kMinute = 60, kHour = 3600;
  const long long seconds = std::llround(std::ceil(time.count()));
  if (seconds < kHour) return fmt::format("{}:{:02}", seconds / kMinute, seconds % kMinute);
  return fmt::format("{}:{:02}:{:02}", seconds / kHour, seconds / kMinute % kMinute,
                     seconds % kMinute);
}

std::string validation_text(const MeasuredStep& step) {
  return step.validation_loss ? fmt::format("  validation loss {:.4f}", *step.validation_loss) : "";
}

RunProgress::RunProgress(const Run& run, bool reports)
    : run_(run),
      reports_(reports),
      rates_(step_rates(run.job)),
      is_terminal_(::isatty(STDERR_FILENO) == 1) {
  if (!reports) return;
  log_.emplace(run.flags.log, run.length.first_step);
  tensorboard_.emplace(run.flags.tensorboard, run.length.first_step);
}

RunProgress::~RunProgress() {
  if (is_line_open_) print_to_stderr("\n");
}

void RunProgress::report(int step, const MeasuredStep& measured) {
  if (!reports_) return;
  const std::int64_t number = run_.length.first_step + step;
  log_->write(log_line(number, measured, rates_));
  tensorboard_->write(scalars_of(number, measured, rates_));
  if (run_.flags.live) {
    so_far_.steps.push_back(measured);
    if (!run_.flags.all_steps) median_times_.thin(so_far_.steps);
    if (Clock::now() >= next_write_) write_so_far();
  }
  if (is_terminal_) {
    // A line with a validation loss stays.
    is_line_open_ = !measured.validation_loss;
    return print_to_stderr(terminal_line(step, measured) + (is_line_open_ ? "" : "\n"));
  }
  print_to_stderr(fmt::format("step {:>3}  loss {:.4f}{}  {:.3f} ms\n", number, measured.loss,
                              validation_text(measured),
                              to_seconds(step_time(measured)).value * 1e3));
}

/// With the time left at the speed of the steps so far, of which `step` is the last.
std::string RunProgress::terminal_line(int step, const MeasuredStep& measured) const {
  constexpr std::string_view kEraseLine = "\r\033[K";
  const std::chrono::duration<double> passed = Clock::now() - begin_;
  return fmt::format("{}step {} of {}  loss {:.4f}{}  {:.0f} tokens/s  ETA {}", kEraseLine,
                     run_.length.first_step + step + 1, run_.length.first_step + run_.length.steps,
                     measured.loss, validation_text(measured), rates_.tokens_per_second(measured),
                     clock_text(passed / (step + 1) * (run_.length.steps - step - 1)));
}

/// A failed write does not stop the run: the file is written again after a later step.
void RunProgress::write_so_far() {
  constexpr int kShareOfWriting = 10;  // so that a long trace does not delay the training
  const Clock::time_point begin = Clock::now();
  try {
    write_file(run_.flags.output.file,
               results_trace({run_.job, run_.flags, run_.graph, so_far_, run_.length}));
  } catch (const RuntimeFailure& failure) {
    if (!std::exchange(has_warned_, true))
      print_to_stderr(fmt::format("warning: {}: {}; will retry after a later step\n",
                                  failure.diagnostic().where, failure.diagnostic().what));
  }
  next_write_ = Clock::now() + kShareOfWriting * (Clock::now() - begin);
}

}  // namespace meshwright

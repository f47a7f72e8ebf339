/// Any text as a schedule CSV: rejected with InputError, or a schedule that can be timed, bounded
/// and, unless the format cannot express it, written and read again.
#include "cli/schedule/schedule_figures.hpp"
#include "core/formats/schedule_csv.hpp"
#include "fuzz_file.hpp"
#include "fuzz_reader.hpp"

namespace meshwright {
namespace {

/// What `schedule --check FILE` does.
void check_file(std::string_view input) {
  static const FuzzFile file;
  file.write(input);
  ScheduleFlags flags;
  flags.check_file = file.path();
  const ScheduleFigures figures = checked_schedule(flags);
  MW_CHECK(figures.makespan_bound <= figures.timing.makespan);
  MW_CHECK(figures.period_bound <= figures.timing.period);
  MW_CHECK(figures.timing.period <= figures.timing.makespan);
}

void write_again(const Schedule& schedule) {
  for (const CsvContent content : {CsvContent::kComputeOnly, CsvContent::kWithCommunication}) {
    std::string csv;
    try {
      csv = write_schedule_csv(schedule, content);
    } catch (const InputError&) {
      continue;  // cannot be expressed
    }
    MW_CHECK(read_schedule_csv(csv, schedule.name, "again").schedule == schedule);
  }
}

}  // namespace
}  // namespace meshwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace meshwright;
  return fuzz_reader(data, size, [](std::string_view input) {
    const ImportedSchedule read = read_schedule_csv(input, "input", "input");
    if (!check_schedule(read.schedule).empty()) return;
    write_again(read.schedule);
    check_file(input);
  });
}

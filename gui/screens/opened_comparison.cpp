#include "gui/screens/opened_comparison.hpp"

#include "core/formats/pftrace.hpp"
#include "core/timeline/timeline_of.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/timeline/trace_files.hpp"

namespace meshwright::gui {
namespace {

/// Tasks are matched by name; traces of other programs have no names that a plan knows.
void join(OpenedComparison& opened, const std::function<ValidationReport()>& compare_tasks) {
  try {
    opened.report = compare_tasks();
  } catch (const InputError& error) {
    opened.problem = qstring_of(error.diagnostics().front().what);
  }
}

OpenedComparison read_pair(const std::string& predicted, const std::string& measured) {
  OpenedComparison opened;
  opened.measured_path = measured;
  opened.predicted = std::make_shared<const TimelineTracks>(read_trace_files({predicted}));
  opened.run = std::make_shared<const TimelineTracks>(read_trace_files({measured}));
  join(opened, [&] {
    const Timeline p = read_pftrace(predicted), m = read_pftrace(measured);
    return compare({p, predicted}, {m, measured});
  });
  return opened;
}

std::shared_ptr<const TimelineTracks> one_step(const std::shared_ptr<const TimelineTracks>& run,
                                               const std::vector<TraceStep>& steps,
                                               std::size_t step) {
  return steps.size() == 1
             ? run
             : std::make_shared<const TimelineTracks>(tracks_of_step(*run, steps[step]));
}

/// The step of median time; of a prediction the first one, as compare() takes it.
void choose_steps(OpenedComparison& opened) {
  opened.predicted = one_step(opened.predicted, steps_of(*opened.predicted), 0);
  opened.steps = steps_of(*opened.run);
  choose_step(opened, median_step(opened.steps));
}

}  // namespace

OpenedComparison compare_files(const std::string& predicted, const std::string& measured) {
  OpenedComparison opened = read_pair(predicted, measured);
  if (opened.predicted->origin == TimelineOrigin::kMeasured &&
      opened.run->origin == TimelineOrigin::kPredicted)
    opened = read_pair(measured, predicted);
  choose_steps(opened);
  return opened;
}

OpenedComparison compare_with(const Simulation& simulation,
                              const std::shared_ptr<const TimelineTracks>& run,
                              const std::string& path) {
  OpenedComparison opened;
  opened.run = run;
  opened.predicted = simulation.tracks;
  opened.measured_path = path;
  join(opened, [&] {
    const Timeline p = timeline_of(simulation.step.graph, simulation.step.times);
    const Timeline m = read_pftrace(path);
    return compare({p, "the scenario"}, {m, path});
  });
  choose_steps(opened);
  return opened;
}

void choose_step(OpenedComparison& opened, std::size_t step) {
  opened.step = step;
  opened.measured = one_step(opened.run, opened.steps, step);
}

}  // namespace meshwright::gui

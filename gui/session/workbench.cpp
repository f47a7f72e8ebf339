#include "gui/session/workbench.hpp"

#include <QFileInfo>

namespace meshwright::gui {

Workbench::Workbench(QObject* parent) : QObject(parent) {
  connect(&scenario_, &ScenarioEditor::changed, this, &Workbench::simulate);
  simulate();
}

Workbench::~Workbench() = default;

void Workbench::simulate() {
  jobs_.start<std::shared_ptr<const Simulation>>(
      {tr("Simulate"), "simulate", false}, this,
      [this, scenario = scenario_.scenario()](const JobContext&) {
        return simulate_scenario(scenario, library_);
      },
      [this](const std::shared_ptr<const Simulation>& result) { take(result); });
}

void Workbench::take(const std::shared_ptr<const Simulation>& simulation) {
  simulation_ = simulation;
  if (simulation->is_sound()) {
    sound_simulation_ = simulation;
    causes_ = nullptr;
  }
  Q_EMIT simulated();
  if (simulation->is_sound() && is_up_to_date()) find_causes();
}

void Workbench::find_causes() {
  jobs_.start<std::shared_ptr<const TimelineCauses>>(
      {tr("Find bubble causes"), "causes", false}, this,
      [simulation = sound_simulation_](const JobContext&) { return causes_of(*simulation); },
      [this, of = sound_simulation_](const std::shared_ptr<const TimelineCauses>& causes) {
        if (of != sound_simulation_) return;  // superseded by a newer simulation
        causes_ = causes;
        Q_EMIT causes_found();
      });
}

void Workbench::set_snapshot(std::shared_ptr<const Simulation> snapshot) {
  snapshot_ = std::move(snapshot);
  Q_EMIT snapshot_changed();
}

bool Workbench::is_up_to_date() const {
  return simulation_ && simulation_->scenario == scenario_.scenario();
}

void Workbench::open(const QStringList& paths) {
  if (paths.isEmpty()) return;
  std::vector<std::string> files;
  for (const QString& path : paths) files.push_back(path.toStdString());
  const QString title = paths.size() == 1
                            ? tr("Open %1").arg(QFileInfo(paths.front()).fileName())
                            : tr("Open %n files", nullptr, static_cast<int>(paths.size()));
  jobs_.start<std::shared_ptr<const OpenedFile>>(
      {title, "open", true}, this,
      [files](const JobContext& context) {
        return std::make_shared<const OpenedFile>(
            open_files(files, [&](std::int64_t done, std::int64_t of) {
              context.stop_if_canceled();
              context.report(done, of);
            }));
      },
      [this](const std::shared_ptr<const OpenedFile>& file) { Q_EMIT file_opened(file); });
}

}  // namespace meshwright::gui

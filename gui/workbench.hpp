/// What all screens share: the scenario and its simulation, jobs, preferences, and ways to ask the
/// window for something. Made by the program, handed to every screen.
#pragma once

#include <QObject>
#include <QStringList>
#include <memory>
#include <vector>

#include "gui/jobs.hpp"
#include "gui/opened_file.hpp"
#include "gui/preferences.hpp"
#include "gui/scenario_editor.hpp"
#include "gui/simulation.hpp"

namespace meshwright::gui {

class Workbench : public QObject {
  Q_OBJECT
 public:
  explicit Workbench(QObject* parent = nullptr);
  ~Workbench() override;

  ScenarioEditor& scenario() { return scenario_; }
  Preferences& preferences() { return preferences_; }
  /// Shared with jobs, which outlive nothing: Jobs waits for them.
  JobLibrary& library() { return library_; }
  Jobs& jobs() { return jobs_; }

  /// The latest result, sound or not; null before the first one.
  std::shared_ptr<const Simulation> simulation() const { return simulation_; }
  /// The latest sound one: what is drawn while a setting is not possible.
  std::shared_ptr<const Simulation> sound_simulation() const { return sound_simulation_; }
  /// Of sound_simulation(); null until they are worked out.
  std::shared_ptr<const TimelineCauses> causes() const { return causes_; }
  /// Pinned by Ctrl+D; null: none.
  std::shared_ptr<const Simulation> snapshot() const { return snapshot_; }
  void set_snapshot(std::shared_ptr<const Simulation> snapshot);
  /// True when simulation() is of what scenario() says now.
  bool is_up_to_date() const;

  /// Opens files in a job; screens take the result. Several paths: the ranks of one run.
  void open(const QStringList& paths);
  /// Lays the timeline of one file on that of another; brings the comparison to the front.
  void compare(const QString& predicted, const QString& measured) {
    Q_EMIT comparison_requested(predicted, measured);
  }
  /// Measures this machine, then prices the scenario by it; ends in calibrated().
  void calibrate() { Q_EMIT calibration_requested(); }
  void tell_calibrated(bool is_sound) { Q_EMIT calibrated(is_sound); }
  void show_screen(const QString& name) { Q_EMIT screen_requested(name); }
  /// A line in the log.
  void log(const QString& line) { Q_EMIT logged(line); }

 Q_SIGNALS:
  /// simulation() is new. Every move of a slider ends in one of these.
  void simulated();
  void causes_found();
  void snapshot_changed();
  void screen_requested(const QString& name);
  void comparison_requested(const QString& predicted, const QString& measured);
  void calibration_requested();
  /// False: it was stopped or failed, and the scenario is as it was.
  void calibrated(bool is_sound);
  void file_opened(const std::shared_ptr<const meshwright::gui::OpenedFile>& file);
  void logged(const QString& line);

 private:
  void simulate();
  void take(const std::shared_ptr<const Simulation>& simulation);
  void find_causes();

  Preferences preferences_;
  ScenarioEditor scenario_;
  JobLibrary library_;
  std::shared_ptr<const Simulation> simulation_, sound_simulation_, snapshot_;
  std::shared_ptr<const TimelineCauses> causes_;
  Jobs jobs_;  ///< last: its threads end before what they use
};

}  // namespace meshwright::gui

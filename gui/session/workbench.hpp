/// State shared by all screens: the scenario and its simulation, jobs, preferences, and requests to
/// the window. Created in main() and passed to every screen.
#pragma once

#include <QObject>
#include <QStringList>
#include <memory>
#include <vector>

#include "gui/session/jobs.hpp"
#include "gui/session/opened_file.hpp"
#include "gui/session/preferences.hpp"
#include "gui/session/scenario_editor.hpp"
#include "gui/session/simulation.hpp"

namespace meshwright::gui {

class Workbench : public QObject {
  Q_OBJECT
 public:
  explicit Workbench(QObject* parent = nullptr);
  ~Workbench() override;

  ScenarioEditor& scenario() { return scenario_; }
  Preferences& preferences() { return preferences_; }
  /// Used by jobs too; Jobs waits for them before the library is destroyed.
  JobLibrary& library() { return library_; }
  Jobs& jobs() { return jobs_; }

  /// The latest result, valid or not; null before the first one.
  std::shared_ptr<const Simulation> simulation() const { return simulation_; }
  /// The latest valid result, which stays on the screen while the parameters are invalid.
  std::shared_ptr<const Simulation> sound_simulation() const { return sound_simulation_; }
  /// Causes for sound_simulation(); null until computed.
  std::shared_ptr<const TimelineCauses> causes() const { return causes_; }
  /// The scenario pinned with Ctrl+D; null if none.
  std::shared_ptr<const Simulation> snapshot() const { return snapshot_; }
  void set_snapshot(std::shared_ptr<const Simulation> snapshot);
  /// True if simulation() belongs to the current scenario().
  bool is_up_to_date() const;

  /// Opens files in a job and passes the result to the
  /// screens. Several paths must be the ranks of one run.
  void open(const QStringList& paths);
  /// Compares two timeline files on the Compare screen.
  void compare(const QString& predicted, const QString& measured) {
    Q_EMIT comparison_requested(predicted, measured);
  }
  /// Calibrates this machine and applies the result to
  /// the scenario; calibrated() is emitted at the end.
  void calibrate() { Q_EMIT calibration_requested(); }
  void tell_calibrated(bool is_sound) { Q_EMIT calibrated(is_sound); }
  void show_screen(const QString& name) { Q_EMIT screen_requested(name); }
  /// Adds a line to the log.
  void log(const QString& line) { Q_EMIT logged(line); }

 Q_SIGNALS:
  /// simulation() has changed, for example after a slider was moved.
  void simulated();
  void causes_found();
  void snapshot_changed();
  void screen_requested(const QString& name);
  void comparison_requested(const QString& predicted, const QString& measured);
  void calibration_requested();
  /// `is_sound` is false if the calibration was stopped or failed; the scenario is unchanged then.
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
  Jobs jobs_;  ///< last member: destroyed first, so its threads end before the data they use
};

}  // namespace meshwright::gui

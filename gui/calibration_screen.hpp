/// S8: what a calibration holds: measured points and the curve through them, by kernel family and
/// by collective, and where it all is from.
#pragma once

#include <optional>

#include "core/calibration.hpp"
#include "gui/screen.hpp"

class QLabel;
class QListWidget;
class QTextBrowser;

namespace meshwright::gui {

class EmptyNotice;
class PointChart;

class CalibrationScreen : public Screen {
  Q_OBJECT
 public:
  explicit CalibrationScreen(Workbench& workbench, QWidget* parent = nullptr);
  QString name() const override { return "calibration"; }
  QString title() const override { return tr("Calibration"); }
  bool uses_scenario() const override { return false; }
  void add_actions(ActionSet& actions) override;
  bool take(const OpenedFile& file) override;

 private:
  void choose_file();
  void show_calibration();
  void show_curve(int row);
  void use_in_scenario();

  QListWidget* curves_;
  PointChart* chart_;
  QTextBrowser* provenance_;
  QLabel* note_;
  EmptyNotice* notice_;
  std::optional<Calibration> calibration_;
  std::string path_;
};

}  // namespace meshwright::gui

#include "gui/screens/calibration_screen.hpp"

#include <QDateTime>
#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QVBoxLayout>

#include "gui/screens/calibration_series.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/empty_notice.hpp"

namespace meshwright::gui {
namespace {

/// A path that does not exist yet: calibrations are never
/// overwritten, so readers need not check for changes.
QString place_of_new_calibration() {
  const QString folder =
      QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + "/calibrations";
  QDir().mkpath(folder);  // on failure `meshwright calibrate` reports the error
  const QString stem =
      folder + QLocale::c().toString(QDateTime::currentDateTime(), "/yyyy-MM-dd-HHmmss");
  QString path = stem + ".calib.json";
  for (int i = 2; QFileInfo::exists(path); ++i) path = QString("%1-%2.calib.json").arg(stem).arg(i);
  return path;
}

}  // namespace

std::optional<CalibrationProgress> calibration_progress_from_line(const QString& line) {
  static const QRegularExpression kLine(R"(^\s*(\d{1,3}) %\s+(\S.*)$)");
  const QRegularExpressionMatch match = kLine.match(line);
  if (!match.hasMatch()) return std::nullopt;
  return CalibrationProgress{match.captured(1).toInt(), match.captured(2)};
}

CalibrationScreen::CalibrationScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "calibration", .title = tr("Calibration"), .uses_scenario = false},
             parent) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(make_knobs());
  note_->setWordWrap(true);
  note_->hide();
  column->addWidget(note_);
  QSplitter* left = make_splitter(Qt::Vertical, {{curves_}, {provenance_}});
  auto* right = new QWidget;
  auto* chart_column = new QVBoxLayout(right);
  chart_column->setContentsMargins(0, 0, 0, 0);
  chart_column->addWidget(chart_, 1);
  QHBoxLayout* below = add_row(*chart_column);
  below->addWidget(residual_, 1);
  below->addWidget(without_outliers_);
  without_outliers_->setToolTip(
      tr("Hides points whose leave-one-out error is more than 1.5 × IQR outside the quartiles "
         "(Tukey)"));
  residual_->setWordWrap(true);
  QSplitter* both = make_splitter(Qt::Horizontal, {{left, 1}, {right, 3}});
  both->setSizes({360, 1080});
  notice_ = new EmptyNotice(
      {tr("No calibration loaded"),
       tr("This screen shows measured kernel and communication times with their fitted curves. "
          "Calibrate this machine, or open a calibration file: `meshwright calibrate` writes one "
          "(with `--device cuda` for a GPU), and `meshwright import` converts nccl-tests output."),
       tr("Open…")},
      [this] { choose_file(); }, both, *column);
  curves_->setAccessibleName(tr("Measured curves"));
  provenance_->setAccessibleName(tr("Calibration provenance"));
  connect(curves_, &QListWidget::currentRowChanged, this, &CalibrationScreen::show_curve);
  connect(without_outliers_, &QCheckBox::toggled, this, &CalibrationScreen::show_curve);
  connect(&workbench, &Workbench::calibration_requested, this, [this] {
    this->workbench().show_screen(traits().name);
    use_->setChecked(true);
    measure();
  });
  connect(&program_, &ChildProgram::line_read, this, &CalibrationScreen::take_line);
  connect(&program_, &ChildProgram::ended, this, &CalibrationScreen::end);
}

QWidget* CalibrationScreen::make_knobs() {
  QHBoxLayout* row = make_row();
  quick_->setToolTip(tr("Fewer shapes: about 20 seconds instead of two minutes"));
  measure_->setToolTip(tr("Benchmarks kernels and messages on this machine (about two minutes)"));
  stop_->setToolTip(tr("Stops the calibration and discards its results"));
  use_->setToolTip(
      tr("Simulates the scenario with measured times instead of the analytic cost model"));
  use_->setChecked(true);
  stop_->setEnabled(false);
  progress_->setRange(0, 100);
  progress_->setAccessibleName(tr("Calibration progress"));
  progress_->setMaximumWidth(220);
  progress_->hide();
  verdict_->setWordWrap(true);
  for (QWidget* widget : std::initializer_list<QWidget*>{measure_, stop_, quick_, use_, progress_})
    row->addWidget(widget);
  row->addWidget(verdict_, 1);
  connect(measure_, &QPushButton::clicked, this, &CalibrationScreen::measure);
  connect(stop_, &QPushButton::clicked, this, &CalibrationScreen::stop);
  return row->parentWidget();
}

// ---- calibrating --------------------------------------------------------------------------------

void CalibrationScreen::measure() {
  if (stop_->isEnabled()) return;
  measured_file_ = place_of_new_calibration();
  QStringList arguments{"calibrate", "-o", measured_file_};
  if (quick_->isChecked()) arguments += "--quick";
  measure_->setEnabled(false);
  stop_->setEnabled(true);
  progress_->setValue(0);
  progress_->show();
  verdict_->setText(tr("Calibrating…"));
  last_line_.clear();
  program_.start(arguments);
}

void CalibrationScreen::set_quick(bool quick) { quick_->setChecked(quick); }

void CalibrationScreen::stop() { program_.interrupt(); }

void CalibrationScreen::take_line(const QString& line) {
  if (!line.trimmed().isEmpty()) last_line_ = line.trimmed();
  const std::optional<CalibrationProgress> progress = calibration_progress_from_line(line);
  if (!progress) return;
  progress_->setValue(progress->percent);
  verdict_->setText(progress->what);
}

void CalibrationScreen::end(const ChildProgramEnd& end) {
  const bool is_sound = end.problem.isEmpty() && end.exit_code == 0;
  if (is_sound) {
    settle(tr("Calibration finished."));
    workbench().open({measured_file_});  // take() receives the file and notifies the workbench
  } else {
    settle(end.problem.isEmpty() ? tr("Calibration failed: %1").arg(last_line_) : end.problem);
    workbench().tell_calibrated(false);
  }
}

void CalibrationScreen::settle(const QString& verdict) {
  verdict_->setText(verdict);
  measure_->setEnabled(true);
  stop_->setEnabled(false);
  progress_->hide();
}

// ---- file content -------------------------------------------------------------------------------

void CalibrationScreen::choose_file() {
  auto* dialog =
      new QFileDialog(this, tr("Open calibration"), {}, tr("Calibrations (*.json);;All files (*)"));
  connect(dialog, &QFileDialog::filesSelected, this,
          [this](const QStringList& files) { workbench().open(files); });
  show_dialog(dialog);
}

void CalibrationScreen::add_actions(ActionSet& actions) {
  actions.add({"calibration.measure", MenuId::kTools, tr("Calibrate this &machine"),
               tr("Benchmarks kernels and messages, then applies the results to the scenario"),
               shortcuts("Ctrl+Alt+A")},
              [this] {
                workbench().show_screen(traits().name);
                measure();
              });
  actions.add({"calibration.stop", MenuId::kTools, tr("Stop cal&ibration"),
               tr("Stops the calibration and discards its results"), shortcuts("Ctrl+Alt+Shift+A")},
              [this] { stop(); });
  actions.add({"calibration.use", MenuId::kTools, tr("&Use this calibration"),
               tr("Simulates the scenario with the measured curves"), shortcuts("Ctrl+Alt+P")},
              [this] { use_in_scenario(); });
}

bool CalibrationScreen::take(const OpenedFile& file) {
  const auto* calibration = std::get_if<Calibration>(&file.content);
  if (calibration == nullptr) return false;
  calibration_ = *calibration;
  path_ = file.path;
  show_calibration();
  if (qstring_of(path_) == measured_file_) {
    measured_file_.clear();
    if (use_->isChecked()) price_scenario_by(path_);
    workbench().tell_calibrated(true);
  }
  return true;
}

void CalibrationScreen::show_calibration() {
  const Calibration& c = *calibration_;
  notice_->give_way();
  note_->show();
  curves_->clear();
  for (const CollectiveCurve& curve : c.collectives) curves_->addItem(title_of(curve));
  for (const KernelCurve& curve : c.kernels) curves_->addItem(title_of(curve.family));
  QString html;
  if (c.machine)
    html +=
        tr("<p><b>%1</b>, %2 cores, %3 memory<br>message: %4 + size / %5<br>memory bandwidth: "
           "%6</p>")
            .arg(qstring_of(c.machine->processor).toHtmlEscaped())
            .arg(c.machine->cores)
            .arg(bytes_text(c.machine->memory), time_text(to_ticks(c.machine->message_latency)),
                 rate_text(c.machine->message_bandwidth), rate_text(c.machine->memory_bandwidth));
  html += "<table cellspacing=6>";
  for (const auto& [key, value] : c.provenance)
    html += QString("<tr><td><b>%1</b></td><td>%2</td></tr>")
                .arg(qstring_of(key).toHtmlEscaped(), qstring_of(value).toHtmlEscaped());
  provenance_->setHtml(html + "</table>");
  note_->setText(tr("%1: %2 collective curves, %3 kernel families. Press Ctrl+Alt+P to apply them "
                    "to the scenario.")
                     .arg(qstring_of(path_))
                     .arg(c.collectives.size())
                     .arg(c.kernels.size()));
  if (curves_->count() > 0) curves_->setCurrentRow(0);
}

/// Runs as a job: leave-one-out predictions need one fit per point.
void CalibrationScreen::show_curve() {
  const int row = curves_->currentRow();
  if (!calibration_ || row < 0) return;
  const auto i = static_cast<std::size_t>(row);
  const std::size_t collectives = calibration_->collectives.size();
  const bool is_collective = i < collectives;
  without_outliers_->setEnabled(!is_collective);
  std::function<CurveSeries()> make;
  if (is_collective)
    make = [curve = calibration_->collectives[i]] { return series_of(curve); };
  else
    make = [curve = calibration_->kernels[i - collectives],
            without = without_outliers_->isChecked()] { return series_of(curve, without); };
  workbench().jobs().start<CurveSeries>(
      {tr("Show curve"), "calibration.curve", false}, this,
      [make](const JobContext&) { return make(); },
      [this](CurveSeries made) {
        residual_->setText(made.note);
        chart_->show_series(std::move(made.points));
      });
}

void CalibrationScreen::use_in_scenario() {
  if (!calibration_) return;
  price_scenario_by(path_);
  workbench().show_screen("explore");
}

void CalibrationScreen::price_scenario_by(const std::string& file) {
  workbench().scenario().edit(tr("Use calibration %1").arg(qstring_of(file)), {},
                              [&](Scenario& s) { s.calibration_file = file; });
}

}  // namespace meshwright::gui

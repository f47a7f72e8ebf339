#include "gui/calibration_screen.hpp"

#include <QCheckBox>
#include <QDateTime>
#include <QDir>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QRegularExpression>
#include <QSplitter>
#include <QStandardPaths>
#include <QTextBrowser>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "gui/actions.hpp"
#include "gui/empty_notice.hpp"
#include "gui/number_text.hpp"
#include "gui/point_chart.hpp"
#include "gui/workbench.hpp"
#include "simulator/kernel_curve_fit.hpp"

namespace meshwright::gui {
namespace {

QString from(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QString seconds_text(double seconds) {
  constexpr double kPicoseconds = 1e12;
  return time_text(Ticks(static_cast<std::int64_t>(seconds * kPicoseconds)));
}

QString title_of(const CollectiveCurve& curve) {
  const QString text =
      CalibrationScreen::tr("%1, %2 ranks").arg(from(name_of(curve.kind))).arg(curve.ranks);
  return curve.nodes == 1 ? text : text + CalibrationScreen::tr(" on %1 nodes").arg(curve.nodes);
}

QString title_of(const KernelFamily& family) {
  // A routine may be of two kinds: the products of experts are products too.
  const QString kind =
      family.kind == KernelKind::kGroupedGemm ? from(name_of(family.kind)) + " " : QString();
  return kind + QString("%1 %2 %3%4")
                    .arg(from(name_of(family.routine)), from(name_of(family.phase)),
                         from(name_of(family.dtype)),
                         family.causal ? CalibrationScreen::tr(", causal") : QString());
}

PointSeries series_of(const CollectiveCurve& curve) {
  PointSeries series;
  series.x_title = CalibrationScreen::tr("size of the whole buffer");
  series.y_title = CalibrationScreen::tr("time of one call");
  series.x_text = [](double bytes) { return bytes_text(Bytes(static_cast<std::int64_t>(bytes))); };
  series.y_text = seconds_text;
  series.is_joined = true;
  series.x_is_bytes = true;
  for (const CurvePoint& point : curve.points) {
    series.points.emplace_back(static_cast<double>(point.bytes.value), point.time.value);
    series.texts.push_back(
        QString("%1: %2").arg(bytes_text(point.bytes), seconds_text(point.time.value)));
  }
  return series;
}

Kernel kernel_of(const KernelFamily& family, const KernelPoint& point) {
  return {.kind = family.kind,
          .phase = family.phase,
          .routine = family.routine,
          .dtype = family.dtype,
          .causal = family.causal,
          .batch = point.batch,
          .m = point.m,
          .n = point.n,
          .k = point.k,
          .flops = point.flops,
          .memory_traffic = point.memory_traffic,
          .source = {}};
}

/// What all other points say of each one: how far the curve can be trusted between its points.
/// Empty for curves with too few points, or so many that it would take a while.
std::vector<double> expected_without_itself(const KernelCurve& curve) {
  constexpr std::size_t kFewest = 3, kMost = 300;
  std::vector<double> expected;
  if (curve.points.size() < kFewest || curve.points.size() > kMost) return expected;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    KernelCurve others = curve;
    others.points.erase(others.points.begin() + static_cast<std::ptrdiff_t>(i));
    expected.push_back(
        KernelCurveFit(others).time_of(kernel_of(curve.family, curve.points[i])).value);
  }
  return expected;
}

/// Against arithmetic where there is any, else against memory traffic.
PointSeries series_of(const KernelCurve& curve) {
  const bool by_flops = curve.family.kind == KernelKind::kGemm ||
                        curve.family.kind == KernelKind::kGroupedGemm ||
                        curve.family.kind == KernelKind::kAttention;
  PointSeries series;
  series.x_title = by_flops ? CalibrationScreen::tr("arithmetic of one call, FLOP")
                            : CalibrationScreen::tr("memory traffic of one call");
  series.y_title = CalibrationScreen::tr("time of one call");
  series.x_text = [by_flops](double x) {
    return by_flops ? QString::number(x, 'g', 2) : bytes_text(Bytes(static_cast<std::int64_t>(x)));
  };
  series.x_is_bytes = !by_flops;
  series.y_text = seconds_text;
  for (const KernelPoint& point : curve.points) {
    const double x = by_flops ? static_cast<double>(point.flops.value)
                              : static_cast<double>(point.memory_traffic.value);
    series.points.emplace_back(x, point.time.value);
    series.texts.push_back(CalibrationScreen::tr("batch %1, %2 × %3 × %4: %5, spread %6 of %7")
                               .arg(point.batch)
                               .arg(point.m)
                               .arg(point.n)
                               .arg(point.k)
                               .arg(seconds_text(point.time.value), percent_text(point.spread))
                               .arg(point.samples));
  }
  series.expected = expected_without_itself(curve);
  for (std::size_t i = 0; i < series.expected.size(); ++i)
    series.texts[i] += "\n" + CalibrationScreen::tr("the other points alone say %1")
                                  .arg(seconds_text(series.expected[i]));
  return series;
}

/// "○ each point … missed by 3 % (median), 12 % at most"; empty if nothing is known.
QString residual_text(const PointSeries& series) {
  if (series.expected.empty()) return {};
  std::vector<double> missed;
  for (std::size_t i = 0; i < series.expected.size(); ++i)
    missed.push_back(std::abs(series.expected[i] / series.points[i].y() - 1));
  std::sort(missed.begin(), missed.end());
  return CalibrationScreen::tr(
             "○ what all other points say of each one: missed by %1 (median), %2 at most")
      .arg(percent_text(missed[missed.size() / 2]), percent_text(missed.back()));
}

/// A file that is not there yet: calibrations are kept, and what has read one need not ask whether
/// it is still the same.
QString place_of_new_calibration() {
  const QString folder =
      QStandardPaths::writableLocation(QStandardPaths::AppDataLocation) + "/calibrations";
  QDir().mkpath(folder);  // else the program says what is wrong
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
    : Screen(workbench, parent),
      measure_(new QPushButton(tr("&Measure this machine"))),
      stop_(new QPushButton(tr("&Stop"))),
      quick_(new QCheckBox(tr("&Quickly"))),
      use_(new QCheckBox(tr("&Price the scenario by it"))),
      progress_(new QProgressBar),
      verdict_(new QLabel),
      curves_(new QListWidget),
      chart_(new PointChart),
      provenance_(new QTextBrowser),
      note_(new QLabel),
      residual_(new QLabel) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(make_knobs());
  note_->setWordWrap(true);
  note_->hide();
  column->addWidget(note_);
  auto* left = new QSplitter(Qt::Vertical);
  left->addWidget(curves_);
  left->addWidget(provenance_);
  auto* both = new QSplitter(Qt::Horizontal);
  both->addWidget(left);
  auto* right = new QWidget;
  auto* chart_column = new QVBoxLayout(right);
  chart_column->setContentsMargins(0, 0, 0, 0);
  chart_column->addWidget(chart_, 1);
  chart_column->addWidget(residual_);
  residual_->setWordWrap(true);
  both->addWidget(right);
  both->setStretchFactor(0, 1);
  both->setStretchFactor(1, 3);
  both->setSizes({360, 1080});
  notice_ = new EmptyNotice(
      {tr("No calibration is open"),
       tr("Measured times of kernels and messages, as points and curves. Measure this machine, or "
          "open a file: `meshwright calibrate` writes them, on a GPU with `--device cuda`, and "
          "`meshwright import` reads the output of nccl-tests."),
       tr("Open…")},
      [this] { choose_file(); }, both);
  column->addWidget(notice_, 1);
  column->addWidget(both, 1);
  curves_->setAccessibleName(tr("Measured curves"));
  provenance_->setAccessibleName(tr("Where the calibration is from"));
  connect(curves_, &QListWidget::currentRowChanged, this, &CalibrationScreen::show_curve);
  connect(&workbench, &Workbench::calibration_requested, this, [this] {
    this->workbench().show_screen(name());
    use_->setChecked(true);
    measure();
  });
  connect(&program_, &ChildProgram::line_read, this, &CalibrationScreen::take_line);
  connect(&program_, &ChildProgram::ended, this, &CalibrationScreen::end);
}

QWidget* CalibrationScreen::make_knobs() {
  auto* knobs = new QWidget;
  auto* row = new QHBoxLayout(knobs);
  row->setContentsMargins(0, 0, 0, 0);
  quick_->setToolTip(tr("20 seconds in place of two minutes, fewer shapes"));
  use_->setChecked(true);
  stop_->setEnabled(false);
  progress_->setRange(0, 100);
  progress_->setAccessibleName(tr("Progress of the measurement"));
  progress_->setMaximumWidth(220);
  progress_->hide();
  verdict_->setWordWrap(true);
  for (QWidget* widget : std::initializer_list<QWidget*>{measure_, stop_, quick_, use_, progress_})
    row->addWidget(widget);
  row->addWidget(verdict_, 1);
  connect(measure_, &QPushButton::clicked, this, &CalibrationScreen::measure);
  connect(stop_, &QPushButton::clicked, this, &CalibrationScreen::stop);
  return knobs;
}

// ---- measuring ----------------------------------------------------------------------------------

void CalibrationScreen::measure() {
  if (stop_->isEnabled()) return;
  measured_file_ = place_of_new_calibration();
  QStringList arguments{"calibrate", "-o", measured_file_};
  if (quick_->isChecked()) arguments += "--quick";
  measure_->setEnabled(false);
  stop_->setEnabled(true);
  progress_->setValue(0);
  progress_->show();
  verdict_->setText(tr("Measuring…"));
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
    settle(tr("Measured."));
    workbench().open({measured_file_});  // take() gets it, and tells
  } else {
    settle(end.problem.isEmpty() ? tr("Not measured: %1").arg(last_line_) : end.problem);
    workbench().tell_calibrated(false);
  }
}

void CalibrationScreen::settle(const QString& verdict) {
  verdict_->setText(verdict);
  measure_->setEnabled(true);
  stop_->setEnabled(false);
  progress_->hide();
}

// ---- what a file holds --------------------------------------------------------------------------

void CalibrationScreen::choose_file() {
  auto* dialog = new QFileDialog(this, tr("Open a calibration"), {},
                                 tr("Calibrations (*.json);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QFileDialog::filesSelected, this,
          [this](const QStringList& files) { workbench().open(files); });
  dialog->open();
}

void CalibrationScreen::add_actions(ActionSet& actions) {
  actions.add({"calibration.measure",
               MenuId::kTools,
               tr("&Measure this machine"),
               tr("Times kernels and messages, then prices the scenario by them"),
               {QKeySequence("Ctrl+Alt+A")}},
              [this] {
                workbench().show_screen(name());
                measure();
              });
  actions.add({"calibration.stop",
               MenuId::kTools,
               tr("Stop measur&ing"),
               tr("Nothing of it is kept"),
               {QKeySequence("Ctrl+Alt+Shift+A")}},
              [this] { stop(); });
  actions.add({"calibration.use",
               MenuId::kTools,
               tr("&Use the calibration"),
               tr("The scenario is priced by the measured curves"),
               {QKeySequence("Ctrl+Alt+P")}},
              [this] { use_in_scenario(); });
}

bool CalibrationScreen::take(const OpenedFile& file) {
  const auto* calibration = std::get_if<Calibration>(&file.content);
  if (calibration == nullptr) return false;
  calibration_ = *calibration;
  path_ = file.path;
  show_calibration();
  if (from(path_) == measured_file_) {
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
        tr("<p><b>%1</b>, %2 cores, %3 memory<br>message %4 + size over %5<br>memory %6</p>")
            .arg(from(c.machine->processor).toHtmlEscaped())
            .arg(c.machine->cores)
            .arg(bytes_text(c.machine->memory), seconds_text(c.machine->message_latency.value),
                 rate_text(c.machine->message_bandwidth), rate_text(c.machine->memory_bandwidth));
  html += "<table cellspacing=6>";
  for (const auto& [key, value] : c.provenance)
    html += QString("<tr><td><b>%1</b></td><td>%2</td></tr>")
                .arg(from(key).toHtmlEscaped(), from(value).toHtmlEscaped());
  provenance_->setHtml(html + "</table>");
  note_->setText(tr("%1: %2 curves of collectives, %3 families of kernels. "
                    "Ctrl+Alt+P prices the scenario by them.")
                     .arg(from(path_))
                     .arg(c.collectives.size())
                     .arg(c.kernels.size()));
  if (curves_->count() > 0) curves_->setCurrentRow(0);
}

void CalibrationScreen::show_curve(int row) {
  if (!calibration_ || row < 0) return;
  const auto i = static_cast<std::size_t>(row);
  const std::size_t collectives = calibration_->collectives.size();
  PointSeries series = i < collectives ? series_of(calibration_->collectives[i])
                                       : series_of(calibration_->kernels[i - collectives]);
  residual_->setText(residual_text(series));
  chart_->show_series(std::move(series));
}

void CalibrationScreen::use_in_scenario() {
  if (!calibration_) return;
  price_scenario_by(path_);
  workbench().show_screen("explore");
}

void CalibrationScreen::price_scenario_by(const std::string& file) {
  workbench().scenario().edit(tr("Use the calibration %1").arg(from(file)), {},
                              [&](Scenario& s) { s.calibration_file = file; });
}

}  // namespace meshwright::gui

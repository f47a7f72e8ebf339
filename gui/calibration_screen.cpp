#include "gui/calibration_screen.hpp"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QSplitter>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "gui/actions.hpp"
#include "gui/empty_notice.hpp"
#include "gui/number_text.hpp"
#include "gui/point_chart.hpp"
#include "gui/workbench.hpp"

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
  return CalibrationScreen::tr("%1, %2 ranks on %3 nodes")
      .arg(from(name_of(curve.kind)))
      .arg(curve.ranks)
      .arg(curve.nodes);
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
  return series;
}

}  // namespace

CalibrationScreen::CalibrationScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, parent),
      curves_(new QListWidget),
      chart_(new PointChart),
      provenance_(new QTextBrowser),
      note_(new QLabel) {
  auto* column = new QVBoxLayout(this);
  note_->setWordWrap(true);
  note_->hide();
  column->addWidget(note_);
  auto* left = new QSplitter(Qt::Vertical);
  left->addWidget(curves_);
  left->addWidget(provenance_);
  auto* both = new QSplitter(Qt::Horizontal);
  both->addWidget(left);
  both->addWidget(chart_);
  both->setStretchFactor(0, 1);
  both->setStretchFactor(1, 3);
  both->setSizes({360, 1080});
  notice_ = new EmptyNotice(
      {tr("No calibration is open"),
       tr("Measured times of kernels and messages, as points and curves. `meshwright calibrate -o "
          "mine.calib.json` measures this machine, `meshwright import` reads the output of "
          "nccl-tests."),
       tr("Open…")},
      [this] { choose_file(); }, both);
  column->addWidget(notice_, 1);
  column->addWidget(both, 1);
  curves_->setAccessibleName(tr("Measured curves"));
  provenance_->setAccessibleName(tr("Where the calibration is from"));
  connect(curves_, &QListWidget::currentRowChanged, this, &CalibrationScreen::show_curve);
}

void CalibrationScreen::choose_file() {
  auto* dialog = new QFileDialog(this, tr("Open a calibration"), {},
                                 tr("Calibrations (*.json);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QFileDialog::filesSelected, this,
          [this](const QStringList& files) { workbench().open(files); });
  dialog->open();
}

void CalibrationScreen::add_actions(ActionSet& actions) {
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
  chart_->show_series(i < collectives ? series_of(calibration_->collectives[i])
                                      : series_of(calibration_->kernels[i - collectives]));
}

void CalibrationScreen::use_in_scenario() {
  if (!calibration_) return;
  workbench().scenario().edit(tr("Use the calibration %1").arg(from(path_)), {},
                              [this](Scenario& s) { s.calibration_file = path_; });
  workbench().show_screen("explore");
}

}  // namespace meshwright::gui

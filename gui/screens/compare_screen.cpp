#include "gui/screens/compare_screen.hpp"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QPropertyAnimation>
#include <QVBoxLayout>

#include "gui/screens/compare_dialog.hpp"
#include "gui/screens/slice_text.hpp"
#include "gui/screens/timeline_prompt.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/timeline/morph.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/empty_notice.hpp"
#include "gui/widgets/flow_layout.hpp"
#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
namespace {

constexpr int kMorphSteps = 100;

}  // namespace

CompareScreen::CompareScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "compare", .title = tr("Compare"), .uses_scenario = false},
             parent) {
  auto* column = new QVBoxLayout(this);
  verdict_->setWordWrap(true);
  column->addWidget(verdict_);
  knobs_ = make_knobs();
  column->addWidget(knobs_);
  knobs_->hide();
  beside_ = make_buttons_of_trace();
  column->addWidget(beside_);
  beside_->hide();
  setFocusProxy(view_);
  column->addWidget(new TimelinePrompt(*view_, workbench));
  inspector_->setFrameShape(QFrame::NoFrame);
  inspector_->setAccessibleName(tr("Inspector"));
  connect_inspector();
  QSplitter* both = make_splitter(Qt::Vertical, {{view_, 3}, {report_, 2}});
  notice_ = new EmptyNotice(
      {tr("Nothing to compare yet"),
       tr("Open a trace to look at it and compare it with the scenario, choose two traces with Run "
          "> "
          "Compare two traces, or run the scenario on the Run screen."),
       tr("Choose two traces…")},
      [this] { choose_files(); }, both, *column);
  follow_preferences(*view_, workbench.preferences());
  connect(step_, &QComboBox::currentIndexChanged, this, &CompareScreen::pick_step);
  connect(alignment_, &QComboBox::currentIndexChanged, this, &CompareScreen::align);
  connect(offset_, &QDoubleSpinBox::valueChanged, this, &CompareScreen::align);
  connect(morph_, &QSlider::valueChanged, this, &CompareScreen::morph);
  connect(report_, &ComparisonReport::task_chosen, this, &CompareScreen::go_to_task);
  connect(recalibrate_, &QPushButton::clicked, this, &CompareScreen::recalibrate);
  connect(&workbench, &Workbench::comparison_requested, this, &CompareScreen::open);
  connect(&workbench, &Workbench::calibrated, this, &CompareScreen::take_calibration);
  connect(&workbench, &Workbench::simulated, this, [this] {
    if (awaits_simulation_ && this->workbench().is_up_to_date()) lay_on_scenario();
  });
}

/// Of predicted slices in a comparison, else of the trace shown alone.
void CompareScreen::connect_inspector() {
  const auto unit = [this] { return workbench().preferences().values().time_unit; };
  const auto causes = [this] { return view_->state().content.causes; };
  connect(&view_->selection(), &TimelineSelection::slice_selected, this,
          [this, unit, causes](qint64 slice) {
            if (view_->tracks())
              inspector_->setHtml(slice_html(*view_->tracks(), causes().get(), slice, unit()));
          });
  connect(&view_->selection(), &TimelineSelection::bubble_selected, this,
          [this, unit, causes](qint64 after) {
            if (view_->tracks() && causes())
              inspector_->setHtml(bubble_html(*view_->tracks(), *causes(), after, unit()));
          });
  connect(&view_->selection(), &TimelineSelection::area_selected, this,
          [this, unit, causes](const TimelineArea& area) {
            if (view_->tracks())
              inspector_->setHtml(area_html(*view_->tracks(), causes().get(), area, unit()));
          });
  connect(&view_->selection(), &TimelineSelection::area_cleared, inspector_, &QTextBrowser::clear);
}

/// Idle time of a trace by cause, as far as it can be told without the plan.
void CompareScreen::find_causes(const std::shared_ptr<const TimelineTracks>& tracks) {
  using Causes = std::shared_ptr<const TimelineCauses>;
  workbench().jobs().start<Causes>(
      {tr("Find bubble causes"), "compare.causes", false}, this,
      [tracks](const JobContext&) {
        return std::make_shared<const TimelineCauses>(timeline_causes_of(*tracks));
      },
      [this, tracks](const Causes& causes) {
        if (view_->tracks() == tracks && !view_->state().content.is_comparison()) {
          view_->set_causes(causes);
          show_whole(*tracks, *causes);
        }
      });
}

/// The inspector of a trace without a selection: all of its compute rows.
void CompareScreen::show_whole(const TimelineTracks& tracks, const TimelineCauses& causes) {
  TimelineArea all{.rows = {}, .from = Nanoseconds(0), .to = tracks.end};
  for (std::size_t row = 0; row < tracks.rows.size(); ++row)
    if (tracks.rows[row].is_compute) all.rows.push_back(row);
  inspector_->setHtml(
      area_html(tracks, &causes, all, workbench().preferences().values().time_unit));
}

QWidget* CompareScreen::make_knobs() {
  FlowLayout* knobs = make_flow();
  step_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  step_->setAccessibleName(tr("Measured step"));
  step_->setToolTip(tr("The measured step that is compared"));
  knobs->addWidget(step_);
  alignment_->addItems({tr("step start"), tr("first forward pass"), tr("manual offset")});
  alignment_->setToolTip(tr("The point at which the two timelines are aligned"));
  QHBoxLayout* align = make_row();
  add_labeled(*align, tr("&Align at"), alignment_);
  knobs->addWidget(align->parentWidget());
  constexpr double kMostOffset = 1e6;
  offset_->setRange(-kMostOffset, kMostOffset);
  offset_->setDecimals(3);
  offset_->setSuffix(" ms");
  offset_->setAccessibleName(tr("Offset added to the measured times"));
  offset_->setToolTip(offset_->accessibleName());
  offset_->hide();
  knobs->addWidget(offset_);
  knobs->addWidget(residual_);
  morph_->setRange(0, kMorphSteps);
  morph_->setFixedWidth(200);
  morph_->setToolTip(tr("Moves the predicted slices to their measured positions"));
  QHBoxLayout* morph = make_row();
  add_labeled(*morph, tr("predicte&d"), morph_);
  morph->addWidget(new QLabel(tr("measured")));
  knobs->addWidget(morph->parentWidget());
  recalibrate_->setToolTip(
      tr("Calibrates this machine, simulates the scenario with the result and compares again"));
  knobs->addWidget(recalibrate_);
  return knobs->parentWidget();
}

QWidget* CompareScreen::make_buttons_of_trace() {
  QHBoxLayout* row = make_row();
  const auto add = [&](const QString& text, const QString& hint, auto&& pressed) {
    auto* button = new QPushButton(text);
    button->setToolTip(hint);
    connect(button, &QPushButton::clicked, this, pressed);
    row->addWidget(button);
  };
  add(tr("Compare with &scenario"), tr("Compares this trace with the scenario as it is now"),
      [this] { lay_on_scenario(); });
  add(tr("Compare &with…"), tr("Compares this trace with another one"), [this] {
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Predicted (or earlier) trace"), {},
                                     tr("Traces (*.pftrace *.json *.json.gz);;All files (*)"));
    if (!path.isEmpty()) open(path, qstring_of(shown_.measured_path));
  });
  row->addStretch(1);
  return row->parentWidget();
}

void CompareScreen::add_actions(ActionSet& actions) {
  actions.add({"compare.open", MenuId::kRun, tr("Compare &two traces…"),
               tr("Opens a predicted and a measured trace"), shortcuts("Ctrl+Shift+O")},
              [this] { choose_files(); });
  actions.add({"compare.morph", MenuId::kRun, tr("&Morph predicted into measured"),
               tr("Animates every slice from its predicted to its measured position, and back"),
               shortcuts("Ctrl+Alt+O")},
              [this] { play_morph(); });
  actions.add(
      {"compare.again", MenuId::kRun, tr("Compare &with current scenario"),
       tr("Compares the measured trace with the scenario as it is now"), shortcuts("Ctrl+Alt+Y")},
      [this] { lay_on_scenario(); });
  actions.add({"compare.recalibrate", MenuId::kRun, tr("Recali&brate and compare again"),
               recalibrate_->toolTip(), shortcuts("Ctrl+Alt+E")},
              [this] { recalibrate(); });
}

void CompareScreen::choose_files() {
  auto* dialog = new CompareDialog(this);
  connect(dialog, &CompareDialog::chosen, this, &CompareScreen::open);
  show_dialog(dialog);
}

/// Opens and matches on a worker thread, then shows the result.
void CompareScreen::start(const std::function<OpenedComparison()>& open) {
  workbench().jobs().start<std::shared_ptr<OpenedComparison>>(
      {tr("Compare"), "compare", true}, this,
      [open, alignment = alignment(), offset = offset_by_hand()](const JobContext&) {
        auto opened = std::make_shared<OpenedComparison>(open());
        opened->pairs = std::make_shared<const TimelineComparison>(
            compare_tracks(*opened->predicted, *opened->measured, alignment, offset));
        return opened;
      },
      [this](const std::shared_ptr<OpenedComparison>& opened) {
        show_comparison(std::move(*opened));
      });
}

void CompareScreen::open(const QString& predicted, const QString& measured) {
  workbench().show_screen(traits().name);
  error_before_.reset();
  start([p = predicted.toStdString(), m = measured.toStdString()] { return compare_files(p, m); });
}

bool CompareScreen::take(const OpenedFile& file) {
  if (const auto* pair = std::get_if<OpenedPair>(&file.content)) {
    open(qstring_of(pair->first), qstring_of(pair->second));
    return true;
  }
  const auto* tracks = std::get_if<std::shared_ptr<const TimelineTracks>>(&file.content);
  if (tracks == nullptr) return false;
  error_before_.reset();
  show_alone(*tracks, file.path);
  return true;
}

/// A trace says nothing about the scenario until the user asks for a comparison.
void CompareScreen::show_alone(const std::shared_ptr<const TimelineTracks>& tracks,
                               const std::string& path) {
  shown_ = {};
  shown_.run = tracks;
  shown_.measured_path = path;
  knobs_->hide();
  beside_->show();
  view_->set_tracks(tracks);
  view_->set_causes(nullptr);
  inspector_->clear();
  show_streams(*tracks);
  find_causes(tracks);
  verdict_->setText(tr("%1: %2 slices on %3 rows, %4 · %n step(s)", nullptr,
                       static_cast<int>(tracks->iterations.size()))
                        .arg(qstring_of(tracks->title).toHtmlEscaped(),
                             count_text(static_cast<qint64>(tracks->slice_count())),
                             count_text(static_cast<qint64>(tracks->rows.size())),
                             time_text(Ticks(tracks->end.value * kTicksPerNanosecond))));
  residual_->clear();
  notice_->give_way();
  report_->show_notes({{qstring_of(path), tracks.get()}});
  report_->show_report({});
}

/// Streams of other programs have no fixed roles, so a few ranks show all of theirs.
void CompareScreen::show_streams(const TimelineTracks& tracks) {
  constexpr std::size_t kMostRowsOpened = 64;
  view_->lanes().set_all_streams_shown(tracks.rows.size() <= kMostRowsOpened);
}

/// Repeated task names carry a suffix "#2" that slices do not have: shows the first slice.
void CompareScreen::go_to_task(const QString& name) {
  if (!shown_.predicted) return;
  using Found = std::vector<std::uint32_t>;
  workbench().jobs().start<Found>(
      {tr("Find task"), "compare.find", false}, this,
      [tracks = shown_.predicted, text = name.section('#', 0, 0).toStdString()](const JobContext&) {
        return slices_named(*tracks, text, 1);
      },
      [this, of = shown_.predicted](const Found& found) {
        if (shown_.predicted == of && !found.empty())
          view_->navigation().go_to_slice(found.front());
      });
}

// ---- comparing again ----------------------------------------------------------------------------

void CompareScreen::lay_on_scenario() {
  awaits_simulation_ = false;
  const auto simulation = workbench().sound_simulation();
  if (!shown_.run || shown_.measured_path.empty() || !simulation) return;
  if (shown_.report) error_before_ = step_error(*shown_.report);
  workbench().show_screen(traits().name);
  start([simulation, run = shown_.run, path = shown_.measured_path] {
    return compare_with(*simulation, run, path);
  });
}

void CompareScreen::recalibrate() {
  if (!shown_.run) return;
  awaits_calibration_ = true;
  workbench().calibrate();
}

/// The scenario uses the new calibration by now, and is being simulated.
void CompareScreen::take_calibration(bool is_sound) {
  if (!std::exchange(awaits_calibration_, false) || !is_sound) return;
  awaits_simulation_ = true;
  if (workbench().is_up_to_date()) lay_on_scenario();
}

// ---- showing ------------------------------------------------------------------------------------

void CompareScreen::show_comparison(OpenedComparison comparison) {
  shown_ = std::move(comparison);
  notice_->give_way();
  knobs_->show();
  beside_->hide();
  view_->lanes().set_all_streams_shown(false);
  list_steps();
  report_->show_notes(
      {{tr("predicted"), shown_.predicted.get()}, {tr("measured"), shown_.run.get()}});
  show_tracks();
  report_->show_report(shown_.report);
  show_verdict();
}

void CompareScreen::list_steps() {
  const QSignalBlocker quiet(step_);
  step_->clear();
  const std::size_t count = shown_.steps.size(), median = median_step(shown_.steps);
  for (std::size_t i = 0; i < count; ++i) {
    const Ticks time(shown_.steps[i].duration().value * kTicksPerNanosecond);
    const QString text = i == median ? tr("step %1: %2 (median)")
                         : i == 0    ? tr("step %1: %2 (warm-up)")
                                     : tr("step %1: %2");
    step_->addItem(text.arg(i).arg(time_text(time)));
  }
  step_->setCurrentIndex(static_cast<int>(shown_.step));
  step_->setVisible(count > 1);
}

void CompareScreen::pick_step(int step) {
  if (!shown_.run || step < 0) return;
  using Opened = std::shared_ptr<OpenedComparison>;
  workbench().jobs().start<Opened>(
      {tr("Compare step"), "compare.step", false}, this,
      [shown = shown_, step = static_cast<std::size_t>(step), alignment = alignment(),
       offset = offset_by_hand()](const JobContext&) {
        auto opened = std::make_shared<OpenedComparison>(shown);
        choose_step(*opened, step);
        opened->pairs = std::make_shared<const TimelineComparison>(
            compare_tracks(*opened->predicted, *opened->measured, alignment, offset));
        return opened;
      },
      [this, of = shown_.run, alignment = alignment(),
       offset = offset_by_hand()](const Opened& opened) {
        if (shown_.run != of) return;  // superseded by another comparison
        shown_ = std::move(*opened);
        show_tracks();
        if (alignment != this->alignment() || offset != offset_by_hand()) align();
      });
}

/// Both steps at their own times.
void CompareScreen::show_tracks() {
  const QSignalBlocker quiet(morph_);
  morph_->setValue(0);
  view_->set_comparison(shown_.predicted, shown_.measured, shown_.pairs);
  view_->set_causes(nullptr);
  inspector_->clear();
  show_residual();
}

ComparisonAlignment CompareScreen::alignment() const {
  switch (alignment_->currentIndex()) {
    case 0:
      return ComparisonAlignment::kIterationStart;
    case 1:
      return ComparisonAlignment::kFirstForward;
    default:
      return ComparisonAlignment::kFreeOffset;
  }
}

Nanoseconds CompareScreen::offset_by_hand() const {
  constexpr double kNanosecondsPerMillisecond = 1e6;
  return Nanoseconds(std::llround(offset_->value() * kNanosecondsPerMillisecond));
}

void CompareScreen::align() {
  offset_->setVisible(alignment() == ComparisonAlignment::kFreeOffset);
  if (!shown_.predicted) return;
  using Pairs = std::shared_ptr<const TimelineComparison>;
  workbench().jobs().start<Pairs>(
      {tr("Align"), "compare.align", false}, this,
      [predicted = shown_.predicted, measured = shown_.measured, alignment = alignment(),
       offset = offset_by_hand()](const JobContext&) {
        return std::make_shared<const TimelineComparison>(
            compare_tracks(*predicted, *measured, alignment, offset));
      },
      [this, measured = shown_.measured](const Pairs& pairs) {
        if (shown_.measured != measured) return;  // superseded by another comparison
        shown_.pairs = pairs;
        view_->set_pairs(pairs);
        show_residual();
        if (morph_->value() > 0) morph();
      });
}

/// Only the latest request counts: the view follows the slider as fast as slices can be moved.
void CompareScreen::morph() {
  if (!shown_.pairs) return;
  using Tracks = std::shared_ptr<const TimelineTracks>;
  const double share = static_cast<double>(morph_->value()) / kMorphSteps;
  workbench().jobs().start<Tracks>(
      {tr("Morph"), "compare.morph", false}, this,
      [predicted = shown_.predicted, measured = shown_.measured, pairs = shown_.pairs,
       share](const JobContext&) {
        if (share == 0) return predicted;
        return std::make_shared<const TimelineTracks>(
            morphed(*predicted, *measured, *pairs, share));
      },
      [this, of = shown_.predicted](const Tracks& tracks) {
        if (shown_.predicted == of) view_->set_morphed(tracks);
      });
}

void CompareScreen::play_morph() {
  if (!shown_.pairs) return;
  const int target = morph_->value() == 0 ? kMorphSteps : 0;
  if (workbench().preferences().values().reduced_motion) return morph_->setValue(target);
  constexpr int kPlayMs = 600;
  auto* play = new QPropertyAnimation(morph_, "value", this);
  play->setDuration(kPlayMs);
  play->setEndValue(target);
  play->start(QAbstractAnimation::DeleteWhenStopped);
}

void CompareScreen::show_residual() {
  residual_->setText(
      tr("mean start-time difference: %1")
          .arg(time_text(Ticks(shown_.pairs->residual.value * kTicksPerNanosecond))));
}

void CompareScreen::show_verdict() {
  if (!shown_.report) {
    verdict_->setText(tr("Both timelines are shown, but their tasks could not be matched: %1")
                          .arg(shown_.problem));
    return;
  }
  const ValidationReport& r = *shown_.report;
  QString text =
      tr("Step time: predicted <b>%1</b>, measured <b>%2</b> (median of %3 steps, IQR %4), error "
         "<b>%5</b> · %6 tasks matched")
          .arg(time_text(r.predicted_step), time_text(r.measured_step))
          .arg(r.counted_steps)
          .arg(time_text(r.measured_spread), error_text(step_error(r)), count_text(r.matched));
  if (error_before_) text += " · " + tr("previous error: %1").arg(error_text(error_before_));
  verdict_->setText(text);
}

}  // namespace meshwright::gui

#include "gui/screens/lecture_screen.hpp"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QSignalBlocker>
#include <QTimerEvent>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/schedule/schedule.hpp"
#include "gui/session/workbench.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/theme.hpp"
#include "planner/search/space.hpp"

namespace meshwright::gui {
namespace {

constexpr int kFrameMs = 16;
constexpr double kPlayMs = 12'000;  ///< for the longest schedule
constexpr int kHeadSteps = 40;      ///< of the arrow keys

/// The scenario with another schedule, and with the chunks that it requires.
Scenario with_schedule(Scenario s, const std::string& name) {
  if (s.strategy.schedule != name) set_schedule(s, name);
  return s;
}

bool is_applicable(const Scenario& scenario, const ScheduleRule& rule) {
  const Scenario tried = with_schedule(scenario, std::string(rule.name));
  return !rule.problem(request_of(tried.strategy));
}

ScheduleStack::Shown shown_schedule(const Scenario& scenario, const std::string& name,
                                    JobLibrary& library) {
  ScheduleStack::Shown shown{
      .name = qstring_of(name), .simulation = {}, .causes = {}, .problem = {}};
  auto simulation = simulate_scenario(with_schedule(scenario, name), library);
  if (!simulation->is_sound()) {
    shown.problem = qstring_of(simulation->problems.front().what);
    return shown;
  }
  shown.causes = causes_of(*simulation);
  shown.simulation = std::move(simulation);
  return shown;
}

}  // namespace

LectureScreen::LectureScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "lecture", .title = tr("Lecture"), .uses_scenario = false},
             parent) {
  auto* column = new QVBoxLayout(this);
  QHBoxLayout* row = add_row(*column);
  for (std::size_t i = 0; i < kSchedules; ++i) {
    choices_[i] = new QComboBox;
    const QString letter(QChar(static_cast<char16_t>('A' + i)));
    choices_[i]->setToolTip(tr("Schedule %1 of the scenario").arg(letter));
    add_labeled(*row, "&" + letter, choices_[i]);
    connect(choices_[i], &QComboBox::currentIndexChanged, this, &LectureScreen::simulate);
  }
  row->addStretch(1);
  row->addWidget(play_);
  play_->setToolTip(tr("Plays all schedules at once (Space); ← and → move the head"));
  play_->setFocusPolicy(Qt::NoFocus);
  connect(play_, &QPushButton::clicked, this, [this] { is_playing() ? pause() : play(); });
  column->addWidget(stack_, 1);
  setFocusProxy(stack_);
  pause();
  const auto use_colors = [this] {
    stack_->set_colors(timeline_colors_of(this->workbench().preferences().values()));
  };
  use_colors();
  connect(&workbench.preferences(), &Preferences::changed, this, use_colors);
  connect(&workbench.scenario(), &ScenarioEditor::changed, this, [this] {
    if (isVisible()) come_to_front();
  });
}

void LectureScreen::add_actions(ActionSet& actions) {
  actions.add({"lecture.play", MenuId::kView, tr("&Play schedules"),
               tr("Plays the schedules of the Lecture screen from their start, or stops"),
               shortcuts("Shift+F5")},
              [this] {
                workbench().show_screen(traits().name);
                is_playing() ? pause() : play();
              });
}

void LectureScreen::come_to_front() {
  fill_choices();
  simulate();
}

/// Keeps the choices that are still applicable; at first the classics.
void LectureScreen::fill_choices() {
  const Scenario& scenario = workbench().scenario().scenario();
  QStringList names;
  for (const ScheduleRule& rule : schedule_rules())
    if (is_applicable(scenario, rule)) names += qstring_of(rule.name);
  const QStringList classics{"gpipe", "1f1b", "zb-h1"};
  for (std::size_t i = 0; i < kSchedules; ++i) {
    const QSignalBlocker quiet(choices_[i]);
    const bool is_first = choices_[i]->count() == 0;
    const QString before = is_first ? classics[static_cast<int>(i)] : choices_[i]->currentText();
    choices_[i]->clear();
    choices_[i]->addItems(names);
    if (i > 0) choices_[i]->addItem(tr("none"));
    choices_[i]->setCurrentIndex(std::max(0, choices_[i]->findText(before)));
  }
}

void LectureScreen::simulate() {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kSchedules; ++i) {
    const bool is_none = i > 0 && choices_[i]->currentIndex() == choices_[i]->count() - 1;
    if (!is_none) names.push_back(choices_[i]->currentText().toStdString());
  }
  using Schedules = std::vector<ScheduleStack::Shown>;
  workbench().jobs().start<Schedules>(
      {tr("Simulate schedules"), "lecture", false}, this,
      [names, scenario = workbench().scenario().scenario(),
       &library = workbench().library()](const JobContext& context) {
        Schedules made;
        for (const std::string& name : names) {
          context.stop_if_canceled();
          made.push_back(shown_schedule(scenario, name, library));
        }
        return made;
      },
      [this](const Schedules& made) {
        stack_->show_schedules(made, !workbench().preferences().values().reduced_motion);
      });
}

// ---- playing ------------------------------------------------------------------------------------

void LectureScreen::play() {
  const auto& head = stack_->head();
  played_from_ = head && *head < stack_->end() ? *head : Nanoseconds(0);
  stack_->set_head(played_from_);
  clock_.start();
  timer_.start(kFrameMs, this);
  play_->setText(tr("Pause"));
}

void LectureScreen::pause() {
  timer_.stop();
  play_->setText(tr("Play"));
}

void LectureScreen::timerEvent(QTimerEvent* event) {
  if (event->timerId() != timer_.timerId()) return Screen::timerEvent(event);
  const double share = static_cast<double>(clock_.elapsed()) / kPlayMs;
  const Nanoseconds head =
      played_from_ + Nanoseconds(std::llround(share * static_cast<double>(stack_->end().value)));
  if (head < stack_->end()) return stack_->set_head(head);
  stack_->set_head(std::nullopt);
  pause();
}

void LectureScreen::step_head(int direction) {
  pause();
  const Nanoseconds end = stack_->end();
  const Nanoseconds at = stack_->head().value_or(direction > 0 ? Nanoseconds(0) : end);
  stack_->set_head(std::clamp(at + end / kHeadSteps * direction, Nanoseconds(0), end));
}

void LectureScreen::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Space:
      is_playing() ? pause() : play();
      return;
    case Qt::Key_Left:
      return step_head(-1);
    case Qt::Key_Right:
      return step_head(1);
    case Qt::Key_Home:
      pause();
      return stack_->set_head(Nanoseconds(0));
    case Qt::Key_End:
      pause();
      return stack_->set_head(std::nullopt);
    default:
      Screen::keyPressEvent(event);
  }
}

}  // namespace meshwright::gui

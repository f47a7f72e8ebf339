/// Lecture mode: up to three schedules of the scenario on one time axis, played by a head.
#pragma once

#include <QBasicTimer>
#include <QComboBox>
#include <QElapsedTimer>
#include <QPushButton>
#include <array>
#include <vector>

#include "gui/screens/schedule_stack.hpp"
#include "gui/screens/screen.hpp"

namespace meshwright::gui {

class LectureScreen : public Screen {
  Q_OBJECT
 public:
  explicit LectureScreen(Workbench& workbench, QWidget* parent = nullptr);
  void add_actions(ActionSet& actions) override;
  void come_to_front() override;
  bool is_settled() override { return !stack_->is_moving(); }

  ScheduleStack& stack() const { return *stack_; }
  /// The choice of schedule A, B or C.
  QComboBox& choice(std::size_t index) const { return *choices_[index]; }
  bool is_playing() const { return timer_.isActive(); }

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void timerEvent(QTimerEvent* event) override;

 private:
  void fill_choices();
  void simulate();
  void play();
  void pause();
  void step_head(int direction);

  static constexpr std::size_t kSchedules = 3;
  std::array<QComboBox*, kSchedules> choices_{};
  QPushButton* play_ = new QPushButton;
  ScheduleStack* stack_ = new ScheduleStack;
  QBasicTimer timer_;
  QElapsedTimer clock_;
  Nanoseconds played_from_;
};

}  // namespace meshwright::gui

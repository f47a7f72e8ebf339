/// A button with a thumbnail of a scenario's schedule.
#pragma once

#include <QAbstractButton>

#include "core/schedule/timing.hpp"
#include "gui/session/scenario.hpp"

namespace meshwright::gui {

class ExampleCard : public QAbstractButton {
  Q_OBJECT
 public:
  ExampleCard(const QString& title, const QString& text, const Scenario& scenario,
              QWidget* parent = nullptr);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  QString text_;
  Schedule schedule_;
  ScheduleTiming timing_;
};

}  // namespace meshwright::gui

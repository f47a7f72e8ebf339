/// The actions of a TimelineView, as QActions for menus, the command palette and tests.
#pragma once

#include <QObject>
#include <QWidget>

namespace meshwright::gui {

struct TimelineState;
class TimelinePointer;

/// Adds them to a widget, with shortcuts that work while it has the focus, and keeps their check
/// marks up to date.
class TimelineActions : public QObject {
  Q_OBJECT
 public:
  TimelineActions(QWidget& view, TimelineState& state, const TimelinePointer& pointer);
  /// Texts in the current language.
  void retranslate();

 Q_SIGNALS:
  void search_requested();
  void go_to_requested();

 private:
  void pin_row();
  void update_check_marks();

  QWidget& view_;
  TimelineState& state_;
  const TimelinePointer& pointer_;
};

}  // namespace meshwright::gui

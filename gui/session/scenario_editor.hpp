/// The current scenario with its undo history.
#pragma once

#include <QObject>
#include <QString>
#include <QUndoStack>
#include <functional>

#include "gui/session/scenario.hpp"

namespace meshwright::gui {

class ScenarioEditor : public QObject {
  Q_OBJECT
 public:
  explicit ScenarioEditor(QObject* parent = nullptr);
  const Scenario& scenario() const { return scenario_; }
  QUndoStack& undo_stack() { return undo_stack_; }

  /// Adds one undo step, unless `change` has no effect. Consecutive edits with the same non-empty
  /// `gesture` merge into one step, such as dragging a slider.
  void edit(const QString& text, const QString& gesture,
            const std::function<void(Scenario&)>& change);
  void replace(const QString& text, const Scenario& scenario);
  /// The gesture is over: the next edit is an undo step of its own.
  void end_gesture();

 Q_SIGNALS:
  void changed();

 private:
  class Step;
  void show(const Scenario& scenario);
  Scenario scenario_;
  QUndoStack undo_stack_;
  int gesture_ = 0;  ///< gesture counter: separate gestures with the same name do not merge
};

}  // namespace meshwright::gui

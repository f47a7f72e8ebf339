/// The scenario that is on the screen and every way back to those before it.
#pragma once

#include <QObject>
#include <QString>
#include <QUndoStack>
#include <functional>

#include "gui/scenario.hpp"

namespace meshwright::gui {

class ScenarioEditor : public QObject {
  Q_OBJECT
 public:
  explicit ScenarioEditor(QObject* parent = nullptr);
  const Scenario& scenario() const { return scenario_; }
  QUndoStack& undo_stack() { return undo_stack_; }

  /// One step of undo: "micro-batches 32 → 48". Nothing happens if `change` changes nothing.
  /// Edits in a row with the same non-empty `gesture` are one step: all of a slider's way.
  void edit(const QString& text, const QString& gesture,
            const std::function<void(Scenario&)>& change);
  void replace(const QString& text, const Scenario& scenario);
  /// The mouse was let go: what follows is a step of its own.
  void end_gesture();

 Q_SIGNALS:
  void changed();

 private:
  class Step;
  void show(const Scenario& scenario);
  Scenario scenario_;
  QUndoStack undo_stack_;
  int gesture_ = 0;  ///< counts gestures, so that two of one name do not merge
};

}  // namespace meshwright::gui

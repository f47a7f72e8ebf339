#include "gui/session/scenario_editor.hpp"

#include <QUndoCommand>

namespace meshwright::gui {

class ScenarioEditor::Step : public QUndoCommand {
 public:
  Step(ScenarioEditor& editor, const QString& text, QString gesture, Scenario after)
      : QUndoCommand(text),
        editor_(editor),
        gesture_(std::move(gesture)),
        before_(editor.scenario()),
        after_(std::move(after)) {}

  void undo() override { editor_.show(before_); }
  void redo() override { editor_.show(after_); }
  int id() const override { return gesture_.isEmpty() ? -1 : 1; }
  bool mergeWith(const QUndoCommand* other) override {
    const auto* later = dynamic_cast<const Step*>(other);
    if (later == nullptr || later->gesture_ != gesture_) return false;
    after_ = later->after_;
    setText(later->text());
    return true;
  }

 private:
  ScenarioEditor& editor_;
  QString gesture_;
  Scenario before_, after_;
};

ScenarioEditor::ScenarioEditor(QObject* parent) : QObject(parent), scenario_(default_scenario()) {
  constexpr int kStepsKept = 500;
  undo_stack_.setUndoLimit(kStepsKept);
}

void ScenarioEditor::edit(const QString& text, const QString& gesture,
                          const std::function<void(Scenario&)>& change) {
  Scenario after = scenario_;
  change(after);
  if (after == scenario_) return;
  const QString key = gesture.isEmpty() ? gesture : gesture + QString::number(gesture_);
  undo_stack_.push(new Step(*this, text, key, std::move(after)));  // the stack takes ownership
}

void ScenarioEditor::replace(const QString& text, const Scenario& scenario) {
  edit(text, {}, [&](Scenario& s) { s = scenario; });
}

void ScenarioEditor::end_gesture() { ++gesture_; }

void ScenarioEditor::show(const Scenario& scenario) {
  scenario_ = scenario;
  Q_EMIT changed();
}

}  // namespace meshwright::gui

/// A dialog with all keyboard shortcuts, grouped by menu.
#pragma once

#include <QDialog>

namespace meshwright::gui {

class ActionSet;

class KeySheet : public QDialog {
  Q_OBJECT
 public:
  explicit KeySheet(const ActionSet& actions, QWidget* parent = nullptr);
};

}  // namespace meshwright::gui

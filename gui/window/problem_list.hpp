/// Problems of the scenario; a click goes to the parameter.
#pragma once

#include <QTreeWidget>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright::gui {

class ProblemList : public QTreeWidget {
  Q_OBJECT
 public:
  explicit ProblemList(QWidget* parent = nullptr);
  void show_problems(const std::vector<Diagnostic>& problems);

 Q_SIGNALS:
  /// Diagnostic::where of the clicked problem.
  void chosen(const QString& where);
};

}  // namespace meshwright::gui

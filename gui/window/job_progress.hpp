/// Status bar widget: the oldest listed job, its progress and the number of other jobs.
#pragma once

#include <QWidget>

#include "gui/session/jobs.hpp"

class QLabel;
class QProgressBar;

namespace meshwright::gui {

class JobProgress : public QWidget {
  Q_OBJECT
 public:
  explicit JobProgress(Jobs& jobs, QWidget* parent = nullptr);

 private:
  void show_jobs();

  Jobs& jobs_;
  QLabel* title_;
  QProgressBar* bar_;
};

}  // namespace meshwright::gui

/// What is being worked on, in the status bar: the oldest listed job, how far it is, how many wait.
#pragma once

#include <QWidget>

#include "gui/jobs.hpp"

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

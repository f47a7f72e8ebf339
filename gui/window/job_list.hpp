/// Waiting and running jobs, each with its progress and a cancel button.
#pragma once

#include <QTreeWidget>
#include <map>

#include "gui/session/jobs.hpp"

class QProgressBar;

namespace meshwright::gui {

class JobList : public QTreeWidget {
  Q_OBJECT
 public:
  explicit JobList(Jobs& jobs, QWidget* parent = nullptr);

 private:
  struct Row {
    QTreeWidgetItem* item;
    QProgressBar* bar;
  };
  void show_jobs();
  Row& row_of(const JobStatus& status);
  Jobs& jobs_;
  std::map<JobId, Row> rows_;
};

}  // namespace meshwright::gui

#include "gui/window/job_list.hpp"

#include <QHeaderView>
#include <QProgressBar>
#include <QPushButton>
#include <set>

namespace meshwright::gui {

JobList::JobList(Jobs& jobs, QWidget* parent) : QTreeWidget(parent), jobs_(jobs) {
  setHeaderLabels({tr("Job"), tr("Progress"), QString()});
  setRootIsDecorated(false);
  setAccessibleName(tr("Jobs"));
  header()->setStretchLastSection(false);
  header()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  header()->setSectionResizeMode(1, QHeaderView::Stretch);
  header()->setSectionResizeMode(2, QHeaderView::ResizeToContents);
  connect(&jobs_, &Jobs::changed, this, &JobList::show_jobs);
}

JobList::Row& JobList::row_of(const JobStatus& status) {
  const auto found = rows_.find(status.id);
  if (found != rows_.end()) return found->second;
  auto* item = new QTreeWidgetItem({status.title});
  auto* bar = new QProgressBar;
  auto* cancel = new QPushButton(tr("Cancel"));
  cancel->setToolTip(tr("Cancels this job"));
  cancel->setAccessibleName(tr("Cancel %1").arg(status.title));
  connect(cancel, &QPushButton::clicked, this, [this, id = status.id] { jobs_.cancel(id); });
  addTopLevelItem(item);
  setItemWidget(item, 1, bar);
  setItemWidget(item, 2, cancel);
  return rows_.emplace(status.id, Row{item, bar}).first->second;
}

void JobList::show_jobs() {
  std::set<JobId> alive;
  constexpr int kSteps = 1000;
  for (const JobStatus& status : jobs_.listed()) {
    alive.insert(status.id);
    Row& row = row_of(status);
    // range 0 to 0: busy indicator, progress unknown
    row.bar->setRange(0, status.of > 0 ? kSteps : 0);
    if (status.of > 0) row.bar->setValue(static_cast<int>(kSteps * status.done / status.of));
  }
  for (auto row = rows_.begin(); row != rows_.end();) {
    if (alive.contains(row->first)) {
      ++row;
    } else {
      delete row->second.item;
      row = rows_.erase(row);
    }
  }
}

}  // namespace meshwright::gui

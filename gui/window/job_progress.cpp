#include "gui/window/job_progress.hpp"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>

namespace meshwright::gui {

JobProgress::JobProgress(Jobs& jobs, QWidget* parent)
    : QWidget(parent), jobs_(jobs), title_(new QLabel), bar_(new QProgressBar) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 0, 8, 0);
  row->addWidget(title_);
  row->addWidget(bar_);
  constexpr int kWidth = 160;
  bar_->setFixedWidth(kWidth);
  bar_->setMaximumHeight(fontMetrics().height());
  bar_->setAccessibleName(tr("Progress"));
  hide();
  connect(&jobs_, &Jobs::changed, this, &JobProgress::show_jobs);
}

void JobProgress::show_jobs() {
  const std::vector<JobStatus> listed = jobs_.listed();
  setVisible(!listed.empty());
  if (listed.empty()) return;
  const JobStatus& job = listed.front();
  const int others = static_cast<int>(listed.size()) - 1;
  title_->setText(others == 0 ? job.title : tr("%1 and %2 more").arg(job.title).arg(others));
  constexpr int kSteps = 1000;
  bar_->setRange(0, job.of > 0 ? kSteps : 0);  // range 0 to 0: busy indicator, progress unknown
  if (job.of > 0) bar_->setValue(static_cast<int>(kSteps * job.done / job.of));
}

}  // namespace meshwright::gui

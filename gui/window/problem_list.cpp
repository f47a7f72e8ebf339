#include "gui/window/problem_list.hpp"

#include <QHeaderView>

namespace meshwright::gui {

ProblemList::ProblemList(QWidget* parent) : QTreeWidget(parent) {
  setHeaderLabels({tr("Where"), tr("Problem"), tr("Hint")});
  setRootIsDecorated(false);
  setAccessibleName(tr("Problems"));
  header()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
  header()->setSectionResizeMode(1, QHeaderView::Stretch);
  header()->setSectionResizeMode(2, QHeaderView::Stretch);
  const auto choose = [this](QTreeWidgetItem* item) { Q_EMIT chosen(item->text(0)); };
  connect(this, &QTreeWidget::itemClicked, this, choose);
  connect(this, &QTreeWidget::itemActivated, this, choose);
}

void ProblemList::show_problems(const std::vector<Diagnostic>& problems) {
  clear();
  for (const Diagnostic& problem : problems)
    addTopLevelItem(new QTreeWidgetItem({QString::fromStdString(problem.where),
                                         QString::fromStdString(problem.what),
                                         QString::fromStdString(problem.hint)}));
}

}  // namespace meshwright::gui

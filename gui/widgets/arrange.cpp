#include "gui/widgets/arrange.hpp"

#include <QBoxLayout>
#include <QDialog>
#include <QHeaderView>
#include <QLabel>
#include <QTableWidget>

#include "gui/widgets/flow_layout.hpp"

namespace meshwright::gui {

QSplitter* make_splitter(Qt::Orientation orientation, std::initializer_list<SplitterPart> parts) {
  auto* splitter = new QSplitter(orientation);
  for (const SplitterPart& part : parts) {
    splitter->addWidget(part.widget);
    if (part.stretch > 0) splitter->setStretchFactor(splitter->count() - 1, part.stretch);
  }
  return splitter;
}

QHBoxLayout* make_row() {
  auto* row = new QHBoxLayout(new QWidget);
  row->setContentsMargins(0, 0, 0, 0);
  return row;
}

FlowLayout* make_flow() {
  auto* widget = new QWidget;
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  policy.setHeightForWidth(true);
  widget->setSizePolicy(policy);
  auto* flow = new FlowLayout(widget, FlowLayout::Spare::kAtTheEnd);
  flow->setContentsMargins(0, 0, 0, 0);
  return flow;
}

QHBoxLayout* add_row(QBoxLayout& column) {
  auto* row = new QHBoxLayout;
  column.addLayout(row);
  return row;
}

void add_labeled(QBoxLayout& row, const QString& label, QWidget* input) {
  auto* name = new QLabel(label);
  name->setBuddy(input);
  input->setAccessibleName(QString(label).remove('&'));
  row.addWidget(name);
  row.addWidget(input);
}

void make_row_table(QTableWidget& table, const QFontMetrics& font) {
  table.setEditTriggers(QAbstractItemView::NoEditTriggers);
  table.setSelectionBehavior(QAbstractItemView::SelectRows);
  table.verticalHeader()->hide();
  table.verticalHeader()->setDefaultSectionSize(font.height() + 8);
}

void show_dialog(QDialog* dialog) {
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->open();
}

}  // namespace meshwright::gui

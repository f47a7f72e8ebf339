#include "gui/screens/slice_table.hpp"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>

#include "gui/timeline_view/table_model.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

constexpr int kLaterMs = 150;

}  // namespace

SliceTable::SliceTable(TimelineView& view, QWidget* parent)
    : QTableView(parent), view_(view), slices_(new TimelineTableModel(this)) {
  setModel(slices_);
  setAccessibleName(tr("Visible slices"));
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setAlternatingRowColors(true);
  setShowGrid(false);
  verticalHeader()->hide();
  verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  horizontalHeader()->setStretchLastSection(true);
  later_.setSingleShot(true);
  later_.setInterval(kLaterMs);
  connect(&later_, &QTimer::timeout, this, &SliceTable::refill);
  connect(&view.viewport(), &TimelineViewport::visible_range_changed, this,
          &SliceTable::refill_soon);
  connect(&view.selection(), &TimelineSelection::slice_selected, this, &SliceTable::choose);
  connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& current) {
            if (current.isValid() && hasFocus())
              view_.navigation().go_to_slice(slices_->slice_of(current.row()));
          });
}

void SliceTable::refill_soon() {
  if (isVisible() && !later_.isActive()) later_.start();
}

void SliceTable::refill() {
  // Selecting a row moves the view; the table must not change in response.
  if (hasFocus() && currentIndex().isValid() && slices_->shows(view_.tracks())) return;
  view_.fill_table(*slices_);
  if (view_.selection().slice()) choose(static_cast<qint64>(*view_.selection().slice()));
}

void SliceTable::choose(qint64 slice) {
  if (hasFocus() || !isVisible()) return;
  const int row = slice < 0 ? -1 : slices_->row_of(static_cast<std::size_t>(slice));
  if (row < 0)
    clearSelection();
  else
    selectRow(row);
}

void SliceTable::showEvent(QShowEvent* event) {
  QTableView::showEvent(event);
  refill();
}

void SliceTable::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy))
    copy_rows();
  else
    QTableView::keyPressEvent(event);
}

/// Copies tab-separated values with a header, for spreadsheets.
void SliceTable::copy_rows() const {
  QStringList lines, header;
  for (int column = 0; column < slices_->columnCount(); ++column)
    header += slices_->headerData(column, Qt::Horizontal).toString();
  lines += header.join('\t');
  for (const QModelIndex& row : selectionModel()->selectedRows()) {
    QStringList cells;
    for (int column = 0; column < slices_->columnCount(); ++column)
      cells += row.siblingAtColumn(column).data().toString();
    lines += cells.join('\t');
  }
  QApplication::clipboard()->setText(lines.join('\n') + '\n');
}

}  // namespace meshwright::gui

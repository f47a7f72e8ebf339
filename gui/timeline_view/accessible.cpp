#include "gui/timeline_view/accessible.hpp"

#include <QAccessible>
#include <QAccessibleWidget>
#include <algorithm>
#include <map>
#include <memory>

#include "gui/timeline_view/timeline_view.hpp"
#include "gui/timeline_view/words.hpp"

namespace meshwright::gui {

/// Rows are the slice lanes on the screen; column n is the n-th visible slice of each lane, up to
/// kColumns. Lanes with fewer slices have empty cells.
class TimelineAccessible : public QAccessibleWidget, public QAccessibleTableInterface {
 public:
  static constexpr int kColumns = 256;

  explicit TimelineAccessible(TimelineView* view) : QAccessibleWidget(view, QAccessible::Table) {}
  ~TimelineAccessible() override;

  void* interface_cast(QAccessible::InterfaceType type) override {
    if (type == QAccessible::TableInterface) return static_cast<QAccessibleTableInterface*>(this);
    return QAccessibleWidget::interface_cast(type);
  }

  // ---- queries of the cells ---------------------------------------------------------------------
  TimelineView* view() const { return static_cast<TimelineView*>(widget()); }
  const TimelineContent& content() const { return view()->state().content; }
  const TimeWindow& visible() const { return view()->state().viewport.window(); }
  std::vector<std::size_t> rows() const {
    std::vector<std::size_t> rows;
    const auto& arrangement = view()->state().lanes.arrangement();
    if (arrangement == nullptr) return rows;
    for (const Lane& lane : arrangement->lanes)
      if (lane.kind == LaneKind::kSlices && !lane.is_measured)
        rows.push_back(static_cast<std::size_t>(lane.row));
    return rows;
  }
  std::optional<std::size_t> slice_at_cell(int row, int column) const {
    const std::vector<std::size_t> all = rows();
    if (row < 0 || static_cast<std::size_t>(row) >= all.size() || column < 0) return std::nullopt;
    const std::size_t r = all[static_cast<std::size_t>(row)];
    const TimelineTracks& tracks = *content().tracks;
    const std::size_t slice =
        tracks.first_ending_after(r, visible().from) + static_cast<std::size_t>(column);
    if (slice >= tracks.row_begin[r + 1] || tracks.start_of(slice) >= visible().to)
      return std::nullopt;
    return slice;
  }
  QString text_of_cell(int row, int column) const {
    const auto slice = slice_at_cell(row, column);
    if (!slice) return {};
    const TimelineTracks& tracks = *content().tracks;
    const TimelineCauses* causes = content().causes.get();
    QString text = describe_slice(tracks, causes, *slice);
    if (causes != nullptr && *slice < causes->binding.size() && causes->binding[*slice] != kNoSlice)
      text +=
          TimelineText::tr(" · waits for %1").arg(describe_cause(tracks, causes->binding[*slice]));
    return text;
  }
  QRect rect_of_cell(int row, int column) const {
    const auto slice = slice_at_cell(row, column);
    if (!slice) return {};
    const QRectF box = box_of_slice(view()->state().frame(), false, *slice);
    return QRect(view()->mapToGlobal(box.topLeft().toPoint()), box.size().toSize());
  }
  bool is_selected(int row, int column) const {
    const auto slice = slice_at_cell(row, column);
    return slice && slice == view()->state().selection.slice();
  }
  QString text_of_row(int row) const {
    const std::vector<std::size_t> all = rows();
    if (row < 0 || static_cast<std::size_t>(row) >= all.size()) return {};
    const std::size_t r = all[static_cast<std::size_t>(row)];
    const TimelineRow& what = content().tracks->rows[r];
    return TimelineText::tr("rank %1, %2: %3")
        .arg(what.rank)
        .arg(QString::fromStdString(what.label),
             describe_mixture(*content().tracks, r, visible().from, visible().to));
  }
  QString text_of_column(int column) const {
    return TimelineText::tr("visible slice %1").arg(column + 1);
  }

  // ---- QAccessibleInterface ---------------------------------------------------------------------
  int childCount() const override { return rowCount() * columnCount(); }
  QAccessibleInterface* child(int index) const override {
    const int columns = columnCount();
    return columns == 0 ? nullptr : cellAt(index / columns, index % columns);
  }
  int indexOfChild(const QAccessibleInterface* child) const override;
  QAccessibleInterface* childAt(int, int) const override { return nullptr; }

  // ---- QAccessibleTableInterface ----------------------------------------------------------------
  QAccessibleInterface* cellAt(int row, int column) const override;
  int rowCount() const override { return static_cast<int>(rows().size()); }
  int columnCount() const override {
    int most = 0;
    if (content().tracks == nullptr) return 0;
    for (const std::size_t row : rows()) {
      const std::size_t first = content().tracks->first_ending_after(row, visible().from);
      const std::size_t last = content().tracks->first_starting_from(row, visible().to);
      if (first < last)
        most = std::max(most, static_cast<int>(std::min<std::size_t>(last - first, kColumns)));
    }
    return most;
  }
  QAccessibleInterface* caption() const override { return nullptr; }
  QAccessibleInterface* summary() const override { return nullptr; }
  QString columnDescription(int column) const override { return text_of_column(column); }
  QString rowDescription(int row) const override { return text_of_row(row); }
  int selectedCellCount() const override { return static_cast<int>(selectedCells().size()); }
  QList<QAccessibleInterface*> selectedCells() const override {
    QList<QAccessibleInterface*> cells;
    const auto slice = view()->state().selection.slice();
    if (!slice) return cells;
    const std::vector<std::size_t> all = rows();
    const std::size_t row = content().tracks->row_of(*slice);
    const auto at = std::find(all.begin(), all.end(), row);
    const std::size_t first = content().tracks->first_ending_after(row, visible().from);
    if (at != all.end() && *slice >= first && *slice - first < kColumns)
      if (auto* cell = cellAt(static_cast<int>(at - all.begin()), static_cast<int>(*slice - first)))
        cells.push_back(cell);
    return cells;
  }
  int selectedColumnCount() const override { return 0; }
  int selectedRowCount() const override { return 0; }
  QList<int> selectedColumns() const override { return {}; }
  QList<int> selectedRows() const override { return {}; }
  bool isColumnSelected(int) const override { return false; }
  bool isRowSelected(int) const override { return false; }
  bool selectRow(int) override { return false; }
  bool selectColumn(int) override { return false; }
  bool unselectRow(int) override { return false; }
  bool unselectColumn(int) override { return false; }
  void modelChange(QAccessibleTableModelChangeEvent*) override {}

 private:
  /// Qt owns registered interfaces by id; cells are created on demand and deleted with the table.
  mutable std::map<std::pair<int, int>, QAccessible::Id> cells_;
};

namespace {

class TimelineCell : public QAccessibleInterface,
                     public QAccessibleTableCellInterface,
                     public QAccessibleActionInterface {
 public:
  TimelineCell(const TimelineAccessible* table, int row, int column)
      : table_(table), row_(row), column_(column) {}

  void* interface_cast(QAccessible::InterfaceType type) override {
    if (type == QAccessible::TableCellInterface)
      return static_cast<QAccessibleTableCellInterface*>(this);
    if (type == QAccessible::ActionInterface) return static_cast<QAccessibleActionInterface*>(this);
    return nullptr;
  }

  bool isValid() const override { return table_->isValid(); }
  QObject* object() const override { return nullptr; }
  QAccessibleInterface* parent() const override {
    return QAccessible::queryAccessibleInterface(table_->view());
  }
  QAccessibleInterface* child(int) const override { return nullptr; }
  QAccessibleInterface* childAt(int, int) const override { return nullptr; }
  int childCount() const override { return 0; }
  int indexOfChild(const QAccessibleInterface*) const override { return -1; }
  QString text(QAccessible::Text which) const override {
    return which == QAccessible::Name ? table_->text_of_cell(row_, column_) : QString();
  }
  void setText(QAccessible::Text, const QString&) override {}
  QRect rect() const override { return table_->rect_of_cell(row_, column_); }
  QAccessible::Role role() const override { return QAccessible::Cell; }
  QAccessible::State state() const override {
    QAccessible::State state;
    state.selectable = true;
    state.selected = isSelected();
    state.readOnly = true;
    return state;
  }

  bool isSelected() const override { return table_->is_selected(row_, column_); }
  QList<QAccessibleInterface*> columnHeaderCells() const override { return {}; }
  QList<QAccessibleInterface*> rowHeaderCells() const override { return {}; }
  int columnIndex() const override { return column_; }
  int rowIndex() const override { return row_; }
  int columnExtent() const override { return 1; }
  int rowExtent() const override { return 1; }
  QAccessibleInterface* table() const override { return parent(); }

  QStringList actionNames() const override { return {pressAction()}; }
  void doAction(const QString& name) override {
    if (name == pressAction())
      table_->view()->selection().select_slice(table_->slice_at_cell(row_, column_));
  }
  QStringList keyBindingsForAction(const QString&) const override { return {}; }

 private:
  const TimelineAccessible* table_;
  int row_, column_;
};

QAccessibleInterface* make_accessible(const QString&, QObject* object) {
  if (auto* view = qobject_cast<TimelineView*>(object)) return new TimelineAccessible(view);
  return nullptr;
}

}  // namespace

TimelineAccessible::~TimelineAccessible() {
  for (const auto& [place, id] : cells_) QAccessible::deleteAccessibleInterface(id);
}

QAccessibleInterface* TimelineAccessible::cellAt(int row, int column) const {
  if (row < 0 || row >= rowCount() || column < 0 || column >= columnCount()) return nullptr;
  const auto [at, is_new] = cells_.try_emplace({row, column}, QAccessible::Id{});
  if (is_new)
    at->second = QAccessible::registerAccessibleInterface(new TimelineCell(this, row, column));
  return QAccessible::accessibleInterface(at->second);
}

int TimelineAccessible::indexOfChild(const QAccessibleInterface* child) const {
  const auto* cell = dynamic_cast<const TimelineCell*>(child);
  return cell == nullptr ? -1 : cell->rowIndex() * columnCount() + cell->columnIndex();
}

void register_timeline_accessibility() {
  static const bool is_installed = [] {
    QAccessible::installFactory(make_accessible);
    return true;
  }();
  Q_UNUSED(is_installed);
}

void announce_slice(TimelineView& view, std::size_t slice) {
  if (!QAccessible::isActive()) return;
  const TimelineContent& content = view.state().content;
  view.setAccessibleDescription(describe_slice(*content.tracks, content.causes.get(), slice));
  QAccessibleEvent event(&view, QAccessible::DescriptionChanged);
  QAccessible::updateAccessibility(&event);
}

}  // namespace meshwright::gui

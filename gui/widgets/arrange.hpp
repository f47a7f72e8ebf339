/// Arrangements of widgets that several screens share.
#pragma once

#include <QSplitter>
#include <initializer_list>

class QBoxLayout;
class QTableWidget;

namespace meshwright::gui {

struct SplitterPart {
  QWidget* widget;
  int stretch = 0;
};
QSplitter* make_splitter(Qt::Orientation orientation, std::initializer_list<SplitterPart> parts);

/// Appends an input after its label, which becomes its accessible name.
void add_labeled(QBoxLayout& row, const QString& label, QWidget* input);

/// Makes a table read-only, selected by row, without row headers. `font` sets the row height.
void make_row_table(QTableWidget& table, const QFontMetrics& font);

}  // namespace meshwright::gui

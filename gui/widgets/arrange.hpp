/// Arrangements of widgets and dialogs that several screens share.
#pragma once

#include <QSplitter>
#include <initializer_list>

class QBoxLayout;
class QDialog;
class QHBoxLayout;
class QTableWidget;

namespace meshwright::gui {

class FlowLayout;

struct SplitterPart {
  QWidget* widget;
  int stretch = 0;
};
QSplitter* make_splitter(Qt::Orientation orientation, std::initializer_list<SplitterPart> parts);

/// A row without margins, in a widget of its own: its parentWidget().
QHBoxLayout* make_row();
/// A row below the items of `column`.
QHBoxLayout* add_row(QBoxLayout& column);

/// A row without margins that continues below where the width does not suffice, in a widget of its
/// own: its parentWidget().
FlowLayout* make_flow();

/// Appends an input after its label, which becomes its accessible name.
void add_labeled(QBoxLayout& row, const QString& label, QWidget* input);

/// Makes a table read-only, selected by row, without row headers. `font` sets the row height.
void make_row_table(QTableWidget& table, const QFontMetrics& font);

/// Opens a dialog that deletes itself when it is closed.
void show_dialog(QDialog* dialog);

}  // namespace meshwright::gui

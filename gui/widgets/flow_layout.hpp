/// Items side by side, continued in further rows where the width does not suffice.
#pragma once

#include <QLayout>
#include <memory>
#include <vector>

namespace meshwright::gui {

class FlowLayout : public QLayout {
 public:
  using QLayout::QLayout;

  void addItem(QLayoutItem* item) override { items_.emplace_back(item); }
  int count() const override { return static_cast<int>(items_.size()); }
  QLayoutItem* itemAt(int index) const override;
  QLayoutItem* takeAt(int index) override;
  Qt::Orientations expandingDirections() const override { return {}; }
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override { return arrange(QRect(0, 0, width, 0), false); }
  void setGeometry(const QRect& place) override;
  QSize sizeHint() const override;
  /// The largest item.
  QSize minimumSize() const override;

 private:
  /// Height of all rows; moves the items if `move`. The items of a row share its spare width.
  int arrange(const QRect& place, bool move) const;

  std::vector<std::unique_ptr<QLayoutItem>> items_;
};

}  // namespace meshwright::gui

/// Items side by side, continued in further rows where the width does not suffice.
#pragma once

#include <QLayout>
#include <cstdint>
#include <memory>
#include <vector>

namespace meshwright::gui {

class FlowLayout : public QLayout {
 public:
  enum class Spare : std::uint8_t { kShared, kAtTheEnd };
  /// `spare`: whether the items of a row share its spare width, or keep their preferred widths.
  explicit FlowLayout(QWidget* parent, Spare spare) : QLayout(parent), spare_(spare) {}

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
  /// Height of all rows; moves the items if `move`.
  int arrange(const QRect& place, bool move) const;

  Spare spare_;
  std::vector<std::unique_ptr<QLayoutItem>> items_;
};

}  // namespace meshwright::gui

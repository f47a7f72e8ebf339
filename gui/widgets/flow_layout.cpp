#include "gui/widgets/flow_layout.hpp"

#include <algorithm>

namespace meshwright::gui {

QLayoutItem* FlowLayout::itemAt(int index) const {
  return index >= 0 && index < count() ? items_[static_cast<std::size_t>(index)].get() : nullptr;
}

QLayoutItem* FlowLayout::takeAt(int index) {
  if (index < 0 || index >= count()) return nullptr;
  const auto at = items_.begin() + index;
  QLayoutItem* item = at->release();
  items_.erase(at);
  return item;
}

void FlowLayout::setGeometry(const QRect& place) {
  QLayout::setGeometry(place);
  arrange(place, true);
}

QSize FlowLayout::sizeHint() const {
  const QMargins margins = contentsMargins();
  int width = 0, height = 0;
  for (const auto& item : items_) {
    if (item->isEmpty()) continue;  // hidden
    width += item->sizeHint().width() + (width > 0 ? spacing() : 0);
    height = std::max(height, item->sizeHint().height());
  }
  return QSize(width, height).grownBy(margins);
}

QSize FlowLayout::minimumSize() const {
  QSize least;
  for (const auto& item : items_)
    if (!item->isEmpty()) least = least.expandedTo(item->minimumSize());
  return least.grownBy(contentsMargins());
}

int FlowLayout::arrange(const QRect& place, bool move) const {
  const QRect inner = place.marginsRemoved(contentsMargins());
  int y = inner.top();
  for (std::size_t first = 0; first < items_.size();) {
    std::size_t end = first;
    int width = 0, height = 0;
    std::vector<QLayoutItem*> row;
    for (; end < items_.size(); ++end) {
      if (items_[end]->isEmpty()) continue;  // hidden
      const QSize size = items_[end]->sizeHint();
      const int wider = width + size.width() + (row.empty() ? 0 : spacing());
      if (!row.empty() && wider > inner.width()) break;
      width = wider;
      height = std::max(height, size.height());
      row.push_back(items_[end].get());
    }
    const int in_row = static_cast<int>(row.size());
    const int spare = spare_ == Spare::kShared ? std::max(0, inner.width() - width) : 0;
    int x = inner.left();
    for (int i = 0; i < in_row; ++i) {
      QLayoutItem& item = *row[static_cast<std::size_t>(i)];
      const int share = spare * (i + 1) / in_row - spare * i / in_row;
      const int item_width = std::min(inner.width(), item.sizeHint().width()) + share;
      if (move) item.setGeometry({x, y, item_width, height});
      x += item_width + spacing();
    }
    y += height + spacing();
    first = end;
  }
  const int bottom = items_.empty() ? y : y - spacing();
  return bottom - place.top() + contentsMargins().bottom();
}

}  // namespace meshwright::gui

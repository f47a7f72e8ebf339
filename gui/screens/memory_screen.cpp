#include "gui/screens/memory_screen.hpp"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QPainter>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/session/workbench.hpp"
#include "gui/text/number_text.hpp"
#include "gui/widgets/arrange.hpp"
#include "gui/widgets/flow_layout.hpp"

namespace meshwright::gui {
namespace {

/// For every pipeline rank, the rank with the highest peak memory.
std::vector<std::size_t> fullest_ranks(const Simulation& s) {
  std::vector<std::size_t> fullest(static_cast<std::size_t>(s.plan.strategy.degrees.pipeline));
  std::vector<Bytes> most(fullest.size(), Bytes(-1));
  for (std::size_t i = 0; i < s.step.graph.ranks.size(); ++i) {
    const auto pipeline_rank = static_cast<std::size_t>(s.step.graph.ranks[i].coordinate.pipeline);
    const Bytes peak = total(s.evaluation.peak_memory[i]);
    if (peak <= most[pipeline_rank]) continue;
    most[pipeline_rank] = peak;
    fullest[pipeline_rank] = i;
  }
  return fullest;
}

QPixmap swatch(const MemoryLook& look) {
  QPixmap pixmap(14, 14);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.fillRect(pixmap.rect(), QBrush(look.color, look.pattern));
  painter.setPen(look.color);
  painter.drawRect(0, 0, 13, 13);
  return pixmap;
}

}  // namespace

MemoryScreen::MemoryScreen(Workbench& workbench, QWidget* parent)
    : Screen(workbench, {.name = "memory", .title = tr("Memory")}, parent) {
  auto* column = new QVBoxLayout(this);
  column->addWidget(verdict_);
  column->addWidget(make_legend());
  QSplitter* upper = make_splitter(Qt::Horizontal, {{bars_}, {curve_}});
  column->addWidget(make_splitter(Qt::Vertical, {{upper, 3}, {table_, 1}}), 1);
  verdict_->setWordWrap(true);
  make_row_table(*table_, fontMetrics());
  table_->setAccessibleName(tr("Peak memory"));
  connect(bars_, &MemoryBars::pipeline_rank_chosen, this, &MemoryScreen::show_pipeline_rank);
  connect(table_, &QTableWidget::currentCellChanged, this,
          [this](int row) { show_pipeline_rank(row); });
  connect(&workbench, &Workbench::simulated, this, &MemoryScreen::show_simulation);
}

void MemoryScreen::showEvent(QShowEvent* event) {
  Screen::showEvent(event);
  show_simulation();
}

bool MemoryScreen::is_settled() { return workbench().is_up_to_date(); }

QWidget* MemoryScreen::make_legend() {
  FlowLayout* legend = make_flow();
  for (int c = 0; c < kMemoryClassCount; ++c) {
    QHBoxLayout* entry = make_row();
    auto* color = new QLabel;
    color->setPixmap(swatch(look_of(static_cast<MemoryClass>(c))));
    entry->addWidget(color);
    entry->addWidget(new QLabel(text_of(static_cast<MemoryClass>(c))));
    legend->addWidget(entry->parentWidget());
  }
  return legend->parentWidget();
}

void MemoryScreen::show_simulation() {
  const auto s = workbench().sound_simulation();
  if (!isVisible() || !s || s != workbench().simulation()) return;
  fullest_ = fullest_ranks(*s);
  std::vector<MemoryAmounts> amounts;
  for (const std::size_t rank : fullest_) amounts.push_back(s->evaluation.peak_memory[rank]);
  bars_->show_amounts(std::move(amounts), s->evaluation.memory_capacity);
  const Bytes peak = peak_memory(s->evaluation), capacity = s->evaluation.memory_capacity;
  verdict_->setText(
      peak <= capacity
          ? tr("<b>Fits.</b> The fullest device uses %1 of %2; headroom %3.")
                .arg(bytes_text(peak), bytes_text(capacity), bytes_text(capacity - peak))
          : tr("<b>Does not fit.</b> The fullest device needs %1, %2 more than its capacity of %3.")
                .arg(bytes_text(peak), bytes_text(peak - capacity), bytes_text(capacity)));
  show_table();
  show_pipeline_rank(bars_->chosen());
}

void MemoryScreen::show_table() {
  const auto s = workbench().sound_simulation();
  const QSignalBlocker quiet(table_);
  table_->setColumnCount(kMemoryClassCount + 2);
  QStringList titles{tr("pipeline rank")};
  for (int c = 0; c < kMemoryClassCount; ++c) titles += text_of(static_cast<MemoryClass>(c));
  titles += tr("total");
  table_->setHorizontalHeaderLabels(titles);
  table_->setRowCount(static_cast<int>(fullest_.size()));
  for (std::size_t p = 0; p < fullest_.size(); ++p) {
    const MemoryAmounts& amounts = s->evaluation.peak_memory[fullest_[p]];
    const auto put = [&](int column, const QString& text) {
      auto* item = new QTableWidgetItem(text);
      item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
      table_->setItem(static_cast<int>(p), column, item);
    };
    put(0, QString::number(p));
    for (int c = 0; c < kMemoryClassCount; ++c)
      put(c + 1, bytes_text(amounts.by_class[static_cast<std::size_t>(c)]));
    put(kMemoryClassCount + 1, bytes_text(total(amounts)));
  }
  QHeaderView& header = *table_->horizontalHeader();
  int widest = 0;  // titles are not cut off: the table scrolls instead
  for (const QString& title : titles)
    widest = std::max(widest, header.fontMetrics().horizontalAdvance(title));
  header.setMinimumSectionSize(widest + 2 * header.fontMetrics().averageCharWidth());
  header.setSectionResizeMode(QHeaderView::Stretch);
}

void MemoryScreen::show_pipeline_rank(int pipeline_rank) {
  const auto s = workbench().sound_simulation();
  if (!s || pipeline_rank < 0 || static_cast<std::size_t>(pipeline_rank) >= fullest_.size()) return;
  const std::int32_t rank =
      s->step.graph.ranks[fullest_[static_cast<std::size_t>(pipeline_rank)]].rank.value;
  const auto& curves = s->tracks->memory;
  const auto curve = std::find_if(curves.begin(), curves.end(),
                                  [&](const MemoryCurveOfRank& c) { return c.rank == rank; });
  curve_->show_curve(curve != curves.end() ? *curve : MemoryCurveOfRank{}, s->tracks->end);
}

}  // namespace meshwright::gui

#include "gui/screens/schedule_stack.hpp"

#include <QEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <map>

#include "gui/text/number_text.hpp"
#include "gui/timeline/ruler.hpp"

namespace meshwright::gui {
namespace {

constexpr int kLabelPixels = 15;  ///< legible from the last row of a lecture hall
constexpr int kGutter = 56;       ///< names of ranks
constexpr int kBars = 110;        ///< busy and idle time per rank
constexpr int kAxis = 30;
constexpr int kMargin = 12;
constexpr int kTallestRow = 48;
constexpr int kGlideMs = 1500;  ///< slow enough to follow single passes

/// The first compute row of every pipeline rank.
std::vector<std::size_t> rows_of_pipeline(const TimelineTracks& tracks) {
  std::vector<std::size_t> rows;
  std::vector<std::int32_t> seen;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    const TimelineRow& r = tracks.rows[row];
    if (!r.is_compute || std::find(seen.begin(), seen.end(), r.pipeline_rank) != seen.end())
      continue;
    seen.push_back(r.pipeline_rank);
    rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return tracks.rows[a].pipeline_rank < tracks.rows[b].pipeline_rank;
  });
  return rows;
}

Nanoseconds end_of(const Simulation& s) { return s.tracks->end; }

}  // namespace

ScheduleStack::ScheduleStack(QWidget* parent) : QWidget(parent), colors_(light_colors()) {
  setAccessibleName(tr("Schedules on one time axis"));
  setFocusPolicy(Qt::StrongFocus);
  glide_.setDuration(kGlideMs);
  glide_.setStartValue(0.0);
  glide_.setEndValue(1.0);
  connect(&glide_, &QVariantAnimation::valueChanged, this, [this] { update(); });
  connect(&glide_, &QVariantAnimation::finished, this, [this] {
    for (Block& block : blocks_) block.moving.clear();
    update();
  });
}

void ScheduleStack::show_schedules(std::vector<Shown> schedules, bool animated) {
  const std::vector<Block> before = std::move(blocks_);
  const TimeWindow window_before = before.empty() ? TimeWindow() : window();
  blocks_.clear();
  for (Shown& shown : schedules) {
    Block block{.shown = std::move(shown), .rows = {}, .image = {}, .moving = {}};
    if (block.shown.simulation) block.rows = rows_of_pipeline(*block.shown.simulation->tracks);
    blocks_.push_back(std::move(block));
  }
  glide_.stop();
  for (std::size_t i = 0; animated && i < std::min(before.size(), blocks_.size()); ++i) {
    const auto &a = before[i].shown.simulation, &b = blocks_[i].shown.simulation;
    if (a && b && a->tracks != b->tracks)
      blocks_[i].moving = gliding_slices(*a->tracks, window_before, *b->tracks, window());
  }
  if (std::any_of(blocks_.begin(), blocks_.end(),
                  [](const Block& block) { return !block.moving.empty(); }))
    glide_.start();
  QStringList said;
  for (std::size_t i = 0; i < blocks_.size(); ++i) said += title_of(i);
  setAccessibleDescription(said.join("; "));
  paint_images();
}

void ScheduleStack::set_colors(const TimelineColors& colors) {
  colors_ = colors;
  paint_images();
}

void ScheduleStack::set_head(std::optional<Nanoseconds> time) {
  head_ = time;
  update();
}

Nanoseconds ScheduleStack::end() const {
  Nanoseconds last(1);
  for (const Block& block : blocks_)
    if (block.shown.simulation) last = std::max(last, end_of(*block.shown.simulation));
  return last;
}

QString ScheduleStack::title_of(std::size_t index) const {
  const Shown& shown = blocks_[index].shown;
  const QChar letter(static_cast<char16_t>('A' + index));
  if (!shown.simulation) return tr("%1 · %2: %3").arg(letter).arg(shown.name, shown.problem);
  const Simulation& s = *shown.simulation;
  QString text = tr("%1 · %2 — %3, bubble %4")
                     .arg(letter)
                     .arg(shown.name, time_text(s.evaluation.step_time),
                          percent_text(s.evaluation.bubble_of_period));
  const auto& first = blocks_.front().shown.simulation;
  if (index > 0 && first) {
    const double change = ratio(s.evaluation.step_time, first->evaluation.step_time) - 1;
    text += tr(" (%1 against A)").arg((change < 0 ? "−" : "+") + percent_text(std::abs(change)));
  }
  return text;
}

// ---- places -------------------------------------------------------------------------------------

QRect ScheduleStack::plot() const {
  return rect().adjusted(kMargin + kGutter, kMargin, -kMargin - kBars, -kMargin - kAxis);
}

TimeWindow ScheduleStack::window() const {
  return {Nanoseconds(0), end() + end() / 100, std::max(1, plot().width())};
}

QRect ScheduleStack::place_of(std::size_t index) const {
  const QRect all = plot();
  const int count = std::max(1, static_cast<int>(blocks_.size())), i = static_cast<int>(index);
  const int top = all.top() + all.height() * i / count;
  return {all.left(), top, all.width(), all.top() + all.height() * (i + 1) / count - top};
}

QRect ScheduleStack::rows_of(std::size_t index) const {
  const int title = fontMetrics().height() * 2;
  const QRect place = place_of(index).adjusted(0, title, 0, -kMargin);
  const int rows = static_cast<int>(blocks_[index].rows.size());
  return {place.left(), place.top(), place.width(), std::min(place.height(), rows * kTallestRow)};
}

TimelineScene ScheduleStack::scene_of(const Block& block, QSize size) const {
  TimelineScene scene;
  scene.content.tracks = block.shown.simulation->tracks;
  scene.content.causes = block.shown.causes;
  auto lanes = std::make_shared<LaneArrangement>();
  const int count = static_cast<int>(block.rows.size());
  for (int i = 0; i < count; ++i) {
    const int top = size.height() * i / count;
    lanes->lanes.push_back(
        {.row = static_cast<std::int32_t>(block.rows[static_cast<std::size_t>(i)]),
         .top = top,
         .height = size.height() * (i + 1) / count - top - 2});
  }
  lanes->height = size.height();
  scene.arrangement = std::move(lanes);
  scene.style.colors = colors_;
  scene.style.scale = devicePixelRatioF();
  QFont font = this->font();
  font.setPixelSize(static_cast<int>(std::lround(kLabelPixels * scene.style.scale)));
  scene.fonts = std::make_shared<const LabelFonts>(font);
  scene.window = window();
  scene.height = size.height();
  return scene;
}

// ---- painting -----------------------------------------------------------------------------------

void ScheduleStack::paint_images() {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    blocks_[i].image = blocks_[i].rows.empty() || rows_of(i).height() <= 0
                           ? QImage()
                           : paint_scene(scene_of(blocks_[i], rows_of(i).size()));
  update();
}

void ScheduleStack::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  paint_images();
}

void ScheduleStack::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) paint_images();
}

void ScheduleStack::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), color(colors_.background));
  for (std::size_t i = 0; i < blocks_.size(); ++i) paint_block(painter, i);
  if (blocks_.empty()) return;
  paint_axis(painter);
  if (!head_) return;
  const QRect all = plot();
  QColor veil = color(colors_.background);
  constexpr int kVeilAlpha = 225;
  veil.setAlpha(kVeilAlpha);
  const double x = x_of(*head_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const QRect rows = rows_of(i);
    painter.fillRect(QRectF(x, rows.top(), std::max(0.0, all.right() + 1 - x), rows.height()),
                     veil);
  }
  painter.setPen(QPen(color(colors_.critical), 2));
  painter.drawLine(QPointF(x, all.top()), QPointF(x, all.bottom() + kAxis / 2.0));
}

void ScheduleStack::paint_block(QPainter& painter, std::size_t index) const {
  const Block& block = blocks_[index];
  const QRect place = place_of(index), rows = rows_of(index);
  QFont large = font();
  large.setPixelSize(kLabelPixels + 2);
  large.setWeight(QFont::DemiBold);
  painter.setFont(large);
  painter.setPen(color(colors_.text));
  const QRect title(kMargin, place.top(), width() - 2 * kMargin, rows.top() - place.top());
  painter.drawText(title, Qt::AlignLeft | Qt::AlignVCenter, title_of(index));
  if (block.rows.empty()) return;
  QFont small = font();
  small.setPixelSize(kLabelPixels - 2);
  painter.setFont(small);
  painter.setPen(color(colors_.faint_text));
  const int count = static_cast<int>(block.rows.size());
  for (int i = 0; i < count; ++i)
    if (rows.height() / count >= painter.fontMetrics().height() - 2)
      painter.drawText(QRect(kMargin, rows.top() + rows.height() * i / count, kGutter - 8,
                             rows.height() / count),
                       Qt::AlignRight | Qt::AlignVCenter, QString::number(i));
  if (block.moving.empty())
    painter.drawImage(rows.topLeft(), block.image);
  else
    paint_moving(painter, block, rows);
  paint_bars(painter, block, rows);
  paint_limits(painter, block, rows);
}

void ScheduleStack::paint_moving(QPainter& painter, const Block& block, const QRect& rows) const {
  const double share = eased(glide_.currentValue().toDouble());
  const TimelineTracks& tracks = *block.shown.simulation->tracks;
  const double height = static_cast<double>(rows.height()) / static_cast<double>(block.rows.size());
  std::map<std::int32_t, double> top_of_rank;
  for (std::size_t i = 0; i < block.rows.size(); ++i)
    top_of_rank[tracks.rows[block.rows[i]].rank] = rows.top() + height * static_cast<double>(i);
  painter.fillRect(rows, color(colors_.idle));
  for (const GlidingSlice& slice : block.moving) {
    const auto after = top_of_rank.find(slice.rank_after);
    if (after == top_of_rank.end()) continue;
    const auto before = top_of_rank.find(slice.rank_before);
    const double from = before == top_of_rank.end() ? after->second : before->second;
    const auto between = [share](double a, double b) { return a + share * (b - a); };
    const double left = between(slice.left_before, slice.left_after);
    const double right = between(slice.right_before, slice.right_after);
    const QRectF box(rows.left() + left, between(from, after->second), right - left, height - 2);
    painter.fillRect(box, color(colors_.slice[static_cast<std::size_t>(slice.kind)]));
    painter.setPen(color(colors_.background));
    painter.drawLine(box.topLeft(), box.bottomLeft());
  }
}

/// Busy share of every rank until the end of its schedule; the rest is idle.
void ScheduleStack::paint_bars(QPainter& painter, const Block& block, const QRect& rows) const {
  const TimelineTracks& tracks = *block.shown.simulation->tracks;
  const int count = static_cast<int>(block.rows.size());
  const int left = rows.right() + kMargin, width = kBars - kMargin;
  for (int i = 0; i < count; ++i) {
    const std::size_t row = block.rows[static_cast<std::size_t>(i)];
    const BusyTimes busy = busy_times(tracks, row, Nanoseconds(0), tracks.end);
    const double share = ratio(total(busy), tracks.end);
    const QRect bar(left, rows.top() + rows.height() * i / count, width, rows.height() / count - 2);
    painter.fillRect(bar, color(colors_.idle));
    painter.fillRect(bar, QBrush(color(colors_.hatch), Qt::BDiagPattern));
    QRectF busy_part(bar);
    busy_part.setWidth(busy_part.width() * share);
    painter.fillRect(busy_part, color(colors_.faint_text));
  }
}

/// The step without any idle time, and the lower bound for any order of these passes.
void ScheduleStack::paint_limits(QPainter& painter, const Block& block, const QRect& rows) const {
  const Simulation& s = *block.shown.simulation;
  Nanoseconds work;
  for (const std::size_t row : block.rows)
    work += total(busy_times(*s.tracks, row, Nanoseconds(0), s.tracks->end));
  const Nanoseconds ideal = work / static_cast<std::int64_t>(block.rows.size());
  const auto limit = [&](Nanoseconds time, Argb with, const QString& name, int line) {
    const double x = x_of(time);
    painter.setPen(QPen(color(with), 2, Qt::DashLine));
    painter.drawLine(QPointF(x, rows.top() - 4), QPointF(x, rows.bottom()));
    painter.setPen(color(with));
    const int height = painter.fontMetrics().height();
    painter.drawText(QRectF(x - 300, rows.top() - 2 - height * line, 296, height),
                     Qt::AlignRight | Qt::AlignVCenter, name);
  };
  limit(ideal, colors_.cursor_a,
        tr("ideal %1").arg(time_text(Ticks(ideal.value * kTicksPerNanosecond))), 1);
  if (s.bounds) {
    const QString name = tr("bound %1").arg(time_text(s.bounds->makespan));
    const Nanoseconds bound = floor_nanoseconds(s.bounds->makespan);
    // Side by side if there is room, else the higher one is on the line above.
    const bool has_room =
        x_of(bound) - x_of(ideal) > painter.fontMetrics().horizontalAdvance(name) + kMargin;
    limit(bound, colors_.cursor_b, name, has_room ? 1 : 2);
  }
}

void ScheduleStack::paint_axis(QPainter& painter) const {
  const QRect all = plot();
  QFont small = font();
  small.setPixelSize(kLabelPixels - 2);
  painter.setFont(small);
  for (const RulerMark& mark : ruler_marks(window())) {
    const double x = x_of(mark.time);
    painter.setPen(color(colors_.grid));
    painter.drawLine(QPointF(x, all.bottom()),
                     QPointF(x, all.bottom() + (mark.label.empty() ? 4 : 9)));
    painter.setPen(color(colors_.faint_text));
    painter.drawText(QRectF(x - 60, all.bottom() + 8, 120, kAxis - 8), Qt::AlignCenter,
                     QString::fromStdString(mark.label));
  }
  painter.setPen(color(colors_.grid));
  painter.drawLine(all.left(), all.bottom(), all.right(), all.bottom());
}

}  // namespace meshwright::gui

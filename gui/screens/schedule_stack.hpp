/// Schedules of the same work above each other on one time axis, with large labels, their idle time
/// per rank, and a play head: for lectures and talks.
#pragma once

#include <QImage>
#include <QVariantAnimation>
#include <QWidget>
#include <memory>
#include <optional>
#include <vector>

#include "gui/session/simulation.hpp"
#include "gui/timeline/colors.hpp"
#include "gui/timeline/glide.hpp"
#include "gui/timeline/layout.hpp"
#include "gui/timeline/painter.hpp"

namespace meshwright::gui {

class ScheduleStack : public QWidget {
  Q_OBJECT
 public:
  explicit ScheduleStack(QWidget* parent = nullptr);

  struct Shown {
    QString name;
    /// Null: `problem` is shown instead.
    std::shared_ptr<const Simulation> simulation;
    std::shared_ptr<const TimelineCauses> causes;
    QString problem;
  };
  /// Passes move slowly to their new places if only the order has changed.
  void show_schedules(std::vector<Shown> schedules, bool animated);
  void set_colors(const TimelineColors& colors);

  /// Hides everything after this time, on all schedules at once; nullopt shows all.
  void set_head(std::optional<Nanoseconds> time);
  const std::optional<Nanoseconds>& head() const { return head_; }
  /// The end of the longest schedule.
  Nanoseconds end() const;
  /// The title of a schedule: name, step time, bubble and change against the first one.
  QString title_of(std::size_t index) const;
  /// Horizontal position of a time; the same for all schedules.
  double x_of(Nanoseconds time) const { return plot().left() + window().pixel_of(time); }
  bool is_moving() const { return glide_.state() == QVariantAnimation::Running; }

  QSize sizeHint() const override { return {1000, 600}; }
  QSize minimumSizeHint() const override { return {400, 240}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  struct Block {
    Shown shown;
    std::vector<std::size_t> rows;  ///< one compute row per pipeline rank
    QImage image;
    std::vector<GlidingSlice> moving;
  };
  QRect plot() const;
  TimeWindow window() const;
  QRect place_of(std::size_t index) const;
  QRect rows_of(std::size_t index) const;
  TimelineScene scene_of(const Block& block, QSize size) const;
  void paint_images();
  void paint_block(QPainter& painter, std::size_t index) const;
  void paint_moving(QPainter& painter, const Block& block, const QRect& rows) const;
  void paint_bars(QPainter& painter, const Block& block, const QRect& rows) const;
  void paint_limits(QPainter& painter, const Block& block, const QRect& rows) const;
  void paint_axis(QPainter& painter) const;

  std::vector<Block> blocks_;
  TimelineColors colors_;
  std::optional<Nanoseconds> head_;
  QVariantAnimation glide_;
};

}  // namespace meshwright::gui

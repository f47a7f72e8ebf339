/// The scene as vector graphics, for papers: a rectangle per box, labels as text, and runs of equal
/// color where many slices share a pixel.
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/timeline/box_label.hpp"
#include "gui/timeline/painter.hpp"

namespace meshwright::gui {
namespace {

class VectorLane {
 public:
  VectorLane(const TimelineScene& scene, const Lane& lane, QRectF place, QPainter& painter)
      : scene_(scene), lane_(lane), place_(place), painter_(painter) {}

  void paint() {
    const TimelineTracks& tracks = scene_.content.tracks_of(lane_);
    const auto row = static_cast<std::size_t>(lane_.row);
    const TimeWindow window = scene_.window_of(lane_, scene_.window.width);
    const TimelineColors& colors = scene_.style.colors;
    const double left = std::clamp(window.pixel_of(Nanoseconds(0)), 0.0, place_.width());
    const double right = std::clamp(window.pixel_of(tracks.end), 0.0, place_.width());
    painter_.setPen(Qt::NoPen);
    fill(left, right, tracks.rows[row].is_compute ? colors.idle : colors.row_stripe);
    const TimelineCauses* causes =
        scene_.style.bubble_causes && !lane_.is_measured ? scene_.content.causes.get() : nullptr;
    LaneDrawing drawing;
    draw_lane(tracks, row, window, causes, drawing);
    paint_folded(drawing);
    for (const IdleBox& idle : drawing.idle) hatch(idle);
    const bool with_kind = kinds_fit(tracks, drawing.boxes, place_.width(), width_of_);
    for (const SliceBox& box : drawing.boxes) paint_box(tracks, box, with_kind);
  }

 private:
  void fill(double left, double right, Argb with) {
    if (left < right)
      painter_.fillRect(QRectF(place_.left() + left, place_.top(), right - left, place_.height()),
                        color(with));
  }

  /// Pixels outside of boxes; equal neighbors are merged into one rectangle.
  void paint_folded(const LaneDrawing& drawing) {
    const std::size_t channels = drawing.channels.size();
    const auto width = static_cast<std::size_t>(scene_.window.width);
    std::vector<bool> boxed(width);
    for (const SliceBox& box : drawing.boxes) {
      const auto from = static_cast<std::size_t>(std::max(0.0F, std::floor(box.left)));
      const auto to =
          std::min(width, static_cast<std::size_t>(std::max(0.0F, std::ceil(box.right))));
      for (std::size_t x = from; x < to; ++x) boxed[x] = true;
    }
    std::size_t begin = 0;
    Argb held = 0;
    for (std::size_t x = 0; x <= width; ++x) {
      Argb now = 0;
      if (x < width && channels > 0 && !boxed[x]) now = mixed(drawing, x);
      if (x < width && now == held) continue;
      if (held != 0) fill(static_cast<double>(begin), static_cast<double>(x), held);
      begin = x;
      held = now;
    }
  }

  /// Color of a pixel; 0 if nothing ran.
  Argb mixed(const LaneDrawing& drawing, std::size_t x) const {
    const std::size_t channels = drawing.channels.size();
    std::array<double, 3> sum{};
    double rest = kFullShare;
    const auto add = [&](Argb with, double share) {
      for (std::size_t i = 0; i < 3; ++i) sum[i] += (with >> (16 - 8 * i) & 255) * share;
      rest -= share;
    };
    for (std::size_t c = 0; c < channels; ++c)
      if (const std::uint16_t share = drawing.shares[x * channels + c]; share != 0)
        add(scene_.style.colors.slice[static_cast<std::size_t>(drawing.channels[c])], share);
    if (rest == kFullShare) return 0;
    add(scene_.style.colors.idle, std::max(0.0, rest));
    Argb result = 0xff;
    for (const double channel : sum)
      result = result << 8 | static_cast<Argb>(std::min(255.0, channel / kFullShare + 0.5));
    return result;
  }

  void hatch(const IdleBox& idle) {
    painter_.save();
    const QRectF box(place_.left() + idle.left, place_.top(), idle.right - idle.left,
                     place_.height());
    painter_.setPen(QPen(color(scene_.style.colors.hatch), 0.6));
    constexpr double kStep = 6;
    const auto lines_between = [](double first, double end) {
      return static_cast<int>(std::ceil((end - first) / kStep));
    };
    const double height = place_.height();
    const bool rising = idle.cause == IdleCause::kDrain || idle.cause == IdleCause::kCommunication;
    const bool falling =
        idle.cause == IdleCause::kWarmUp || idle.cause == IdleCause::kCommunication;
    if (rising || falling)
      for (int i = 0; i < lines_between(box.left() - height, box.right()); ++i) {
        const double x = box.left() - height + i * kStep;
        // Clipped manually: Qt's SVG generator does not support clipping.
        const double from = std::max(x, box.left()), to = std::min(x + height, box.right());
        if (falling)
          painter_.drawLine(QPointF(from, box.top() + from - x), QPointF(to, box.top() + to - x));
        if (rising)
          painter_.drawLine(QPointF(from, box.bottom() - from + x),
                            QPointF(to, box.bottom() - to + x));
      }
    else
      for (int i = 0; i < lines_between(box.top() + kStep / 2, box.bottom()); ++i) {
        const double y = box.top() + (i + 0.5) * kStep;
        painter_.drawLine(QPointF(box.left(), y), QPointF(box.right(), y));
      }
    painter_.restore();
  }

  void paint_box(const TimelineTracks& tracks, const SliceBox& box, bool with_kind) {
    const double left = std::max(0.0F, box.left);
    const double right = std::min(place_.width(), static_cast<double>(box.right));
    const Argb with =
        scene_.style.microbatch_colors && tracks.microbatch[box.slice] != kNoMicrobatch
            ? microbatch_color(tracks.microbatch[box.slice])
            : scene_.style.colors.slice[static_cast<std::size_t>(tracks.kind[box.slice])];
    const QRectF rect(place_.left() + left, place_.top(), right - left, place_.height());
    painter_.setBrush(color(with));
    painter_.setPen(QPen(color(scene_.style.colors.background), 0.4));
    painter_.drawRect(rect);
    if (is_later_chunk(tracks, static_cast<std::size_t>(lane_.row), box.slice))
      painter_.fillRect(rect.adjusted(0, rect.height() - kChunkStripe, 0, 0), color(text_on(with)));
    if (right - left < kLabelWidth || place_.height() < 10) return;
    const BoxLabel label =
        box_label(tracks, box.slice, label_room(left, right), with_kind, width_of_);
    if (label.text.empty()) return;
    const QFont normal = painter_.font();
    if (label.is_small) painter_.setFont(smaller(normal));
    painter_.setPen(color(text_on(with)));
    painter_.drawText(rect, Qt::AlignCenter, QString::fromStdString(label.text));
    painter_.setFont(normal);
  }

  const TimelineScene& scene_;
  const Lane& lane_;
  QRectF place_;
  QPainter& painter_;
  TextWidth width_of_ = [this](std::string_view text, bool is_small) {
    const QFont& font = painter_.font();
    const QFontMetrics metrics(is_small ? smaller(font) : font, painter_.device());
    return metrics.horizontalAdvance(
        QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())));
  };
};

}  // namespace

void paint_scene_as_vectors(const TimelineScene& scene, QPainter& painter) {
  if (scene.content.tracks == nullptr || scene.arrangement == nullptr) return;
  painter.save();
  for (const Lane& lane : scene.arrangement->lanes) {
    const int top = lane.top - (lane.is_pinned ? 0 : scene.scroll);
    if (top + lane.height <= (lane.is_pinned ? 0 : scene.arrangement->pinned_height)) continue;
    if (top >= scene.height) continue;
    const QRectF place(0, top, scene.window.width, lane.height);
    if (lane.kind == LaneKind::kSlices) {
      VectorLane(scene, lane, place, painter).paint();
      continue;
    }
    // Counters would need thousands of tiny shapes, so they
    // are embedded as images at four times the resolution.
    TimelineScene alone = scene;
    auto arrangement = std::make_shared<LaneArrangement>();
    arrangement->lanes = {lane};
    arrangement->lanes[0].top = 0;
    arrangement->lanes[0].is_pinned = false;
    alone.arrangement = std::move(arrangement);
    alone.scroll = 0;
    alone.height = lane.height;
    alone.style.scale = 4;
    painter.drawImage(place, paint_scene(alone));
  }
  painter.restore();
}

}  // namespace meshwright::gui

/// How a timeline is drawn: colors, fonts, optional marks.
#pragma once

#include <QFont>
#include <QObject>
#include <memory>

#include "gui/timeline/label_font.hpp"
#include "gui/timeline/painter.hpp"

namespace meshwright::gui {

class TimelineAppearance : public QObject {
  Q_OBJECT
 public:
  TimelineAppearance() { style_.colors = light_colors(); }

  const SceneStyle& style() const { return style_; }
  const TimelineColors& colors() const { return style_.colors; }
  const std::shared_ptr<const LabelFonts>& label_fonts() const { return label_fonts_; }
  bool shows_arrows() const { return arrows_; }
  bool has_reduced_motion() const { return reduced_motion_; }

  void set_theme(const TimelineColors& colors);
  void set_reduced_motion(bool reduced) { reduced_motion_ = reduced; }
  /// The font of the widget, from which the one of slices is made, and device pixels per pixel.
  void set_font(const QFont& font, double scale);
  void set_critical_path_shown(bool shown);
  void toggle_critical_path() { set_critical_path_shown(!style_.critical_path); }
  /// Arrows from and to the selected slice.
  void set_arrows_shown(bool shown);
  void set_bubble_causes_shown(bool shown);
  /// Colors slices by micro-batch instead of by kind.
  void set_microbatch_colors(bool shown);

 Q_SIGNALS:
  void changed();
  void colors_changed();

 private:
  SceneStyle style_;
  std::shared_ptr<const LabelFonts> label_fonts_;
  bool arrows_ = true, reduced_motion_ = false;
};

}  // namespace meshwright::gui

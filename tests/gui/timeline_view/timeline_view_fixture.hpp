/// A view of a small pipeline on the offscreen platform, with simulated user input.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QSignalSpy>
#include <QTest>
#include <QWheelEvent>

#include "gui/timeline_view/timeline_view.hpp"
#include "tests/gui/timeline/shown_pipeline.hpp"

namespace meshwright::gui {

/// Width of the gutter and height of the header.
inline constexpr int kLeft = 132, kTop = 54;

class TimelineViewTest : public testing::Test {
 protected:
  TimelineViewTest() : shown(shown_pipeline("1f1b", {.devices = 4, .microbatches = 8})) {
    view.resize(kLeft + 1000, 400);
    view.appearance().set_reduced_motion(true);
    view.set_tracks(shown.tracks);
    view.set_causes(shown.causes);
    view.show();
    view.activateWindow();
    view.setFocus();
    EXPECT_TRUE(QTest::qWaitForWindowActive(&view));
    view.viewport().show_range(Nanoseconds(0), Nanoseconds(40'000'000));  // 40 us a pixel
    view.wait_for_painters();
  }

  int x_of(Nanoseconds time) const {
    return kLeft + static_cast<int>(ratio(time - view.state().viewport.visible_from(),
                                          view.state().viewport.visible_to() -
                                              view.state().viewport.visible_from()) *
                                    1000);
  }
  Nanoseconds middle_of(std::size_t slice) const {
    return shown.tracks->start_of(slice) + shown.tracks->duration_of(slice) / 2;
  }
  /// Finds the row of a rank by hovering over the view.
  int y_of_rank(int rank) {
    QSignalSpy spy(&view, &TimelineView::slice_hovered);
    for (int y = kTop + 4; y < view.height(); y += 4) {
      for (int x = kLeft + 20; x < kLeft + 1000; x += 60) {
        spy.clear();
        QTest::mouseMove(&view, {x, y});
        if (spy.isEmpty() || spy.back().at(0).toLongLong() < 0) continue;
        const auto slice = static_cast<std::size_t>(spy.back().at(0).toLongLong());
        if (shown.tracks->rows[shown.tracks->row_of(slice)].rank == rank) return y + 4;
        break;
      }
    }
    ADD_FAILURE() << "rank " << rank << " is not on the screen";
    return 0;
  }
  std::size_t slice_named(const std::string& name) const {
    const auto found = slices_named(*shown.tracks, name);
    EXPECT_FALSE(found.empty()) << name;
    return found.empty() ? 0 : found.front();
  }
  void drag(QPoint from, QPoint to, Qt::KeyboardModifiers modifiers = {},
            Qt::MouseButton button = Qt::LeftButton) {
    const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButton b, Qt::MouseButtons held) {
      QMouseEvent event(type, at, view.mapToGlobal(at), b, held, modifiers);
      QApplication::sendEvent(&view, &event);
    };
    send(QEvent::MouseButtonPress, from, button, button);
    for (int step = 1; step <= 4; ++step)
      send(QEvent::MouseMove, from + (to - from) * step / 4, Qt::NoButton, button);
    send(QEvent::MouseButtonRelease, to, button, {});
  }
  void wheel(QPoint at, int notches, Qt::KeyboardModifiers modifiers) {
    QWheelEvent event(at, view.mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, modifiers,
                      Qt::NoScrollPhase, false);
    QApplication::sendEvent(&view, &event);
  }
  Nanoseconds span() const {
    return view.state().viewport.visible_to() - view.state().viewport.visible_from();
  }

  ShownPipeline shown;
  TimelineView view;
};

}  // namespace meshwright::gui

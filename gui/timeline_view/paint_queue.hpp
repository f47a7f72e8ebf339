/// Paints scenes and overviews on worker threads. While one is being painted, only the latest
/// request of its type is queued. Images are delivered on the thread of the queue.
#pragma once

#include <QImage>
#include <QObject>
#include <QThreadPool>
#include <atomic>
#include <functional>
#include <optional>

#include "gui/timeline/painter.hpp"

namespace meshwright::gui {

class TimelinePaintQueue : public QObject {
  Q_OBJECT
 public:
  explicit TimelinePaintQueue(QObject* parent = nullptr);
  /// Cancels and waits for running painters.
  ~TimelinePaintQueue() override;

  /// Does nothing if `scene` equals the last request.
  void request(const TimelineScene& scene);
  void request_overview(std::shared_ptr<const TimelineTracks> tracks, const TimelineColors& colors,
                        QSize size);
  bool is_idle() const { return !scenes_.running && !overviews_.running; }
  /// Blocks until all requests have been delivered.
  void wait();

 Q_SIGNALS:
  void painted(const QImage& image, const meshwright::gui::TimelineScene& scene);
  void overview_painted(const QImage& image);

 private:
  using Work = std::function<std::function<void()>()>;  ///< painting, then delivery
  struct Line {
    QThreadPool worker;
    Work next;
    bool running = false;
  };
  void start(Line& line, Work work);
  void start_next(Line& line);

  QThreadPool lanes_;
  std::atomic<bool> canceled_{false};
  std::optional<TimelineScene> last_;
  Line scenes_, overviews_;
};

}  // namespace meshwright::gui

Q_DECLARE_METATYPE(meshwright::gui::TimelineScene)

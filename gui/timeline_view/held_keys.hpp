/// Keys that zoom and pan while held. By default these are the keys at the physical positions of W,
/// S, A and D, independent of the keyboard layout.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <array>

namespace meshwright::gui {

class HeldKeys : public QObject {
  Q_OBJECT
 public:
  HeldKeys();

  /// Keys (Qt::Key) that zoom in, zoom out, pan left and pan right; 0 for the default.
  void set_keys(const std::array<int, 4>& keys) { keys_ = keys; }
  /// One step per key press instead of continuous movement.
  void set_stepwise(bool stepwise) { stepwise_ = stepwise; }
  /// False if the key is not bound.
  bool press(int key, quint32 scan_code);
  bool release(int key, quint32 scan_code);
  void release_all();
  bool is_moving() const { return timer_.isActive(); }

 Q_SIGNALS:
  void zoomed(double factor);
  /// By a share of the visible range, to the right.
  void panned(double share);

 private:
  enum Key : std::size_t { kIn, kOut, kLeft, kRight, kCount };
  Key key_of(int key, quint32 scan_code) const;
  void step_once(Key key);
  void move();

  QTimer timer_;
  QElapsedTimer clock_;
  std::array<bool, kCount> held_{};
  std::array<int, kCount> keys_{};
  bool stepwise_ = false;
  double speed_ = 0;
};

}  // namespace meshwright::gui

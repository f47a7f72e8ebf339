#include "gui/timeline_view/held_keys.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright::gui {
namespace {

constexpr int kFrameMs = 16;
/// Scan codes of W, S, A, D on Linux (evdev code + 8, on X11 and Wayland).
constexpr std::array<quint32, 4> kScanCodes{25, 39, 38, 40};
constexpr std::array<int, 4> kDefaultKeys{Qt::Key_W, Qt::Key_S, Qt::Key_A, Qt::Key_D};

}  // namespace

HeldKeys::HeldKeys() {
  timer_.setInterval(kFrameMs);
  timer_.setTimerType(Qt::PreciseTimer);
  connect(&timer_, &QTimer::timeout, this, &HeldKeys::move);
}

HeldKeys::Key HeldKeys::key_of(int key, quint32 scan_code) const {
  std::size_t which = kCount;
  for (std::size_t i = 0; i < kCount; ++i) {
    // Without a scan code (tests, remote desktops) compare the letter.
    const bool is_default = scan_code != 0 ? scan_code == kScanCodes[i] : key == kDefaultKeys[i];
    if (keys_[i] != 0 ? key == keys_[i] : is_default) which = i;
  }
  return static_cast<Key>(which);
}

bool HeldKeys::press(int key, quint32 scan_code) {
  const Key which = key_of(key, scan_code);
  if (which == kCount) return false;
  if (stepwise_) {
    step_once(which);
    return true;
  }
  held_[which] = true;
  if (!timer_.isActive()) {
    clock_.start();
    timer_.start();
    move();
  }
  return true;
}

bool HeldKeys::release(int key, quint32 scan_code) {
  const Key which = key_of(key, scan_code);
  if (which == kCount) return false;
  held_[which] = false;
  if (std::none_of(held_.begin(), held_.end(), [](bool held) { return held; })) release_all();
  return true;
}

void HeldKeys::release_all() {
  held_ = {};
  timer_.stop();
  speed_ = 0;
}

void HeldKeys::step_once(Key key) {
  constexpr double kZoom = 0.7, kPan = 0.15;
  if (key == kIn || key == kOut) Q_EMIT zoomed(key == kIn ? kZoom : 1 / kZoom);
  if (key == kLeft || key == kRight) Q_EMIT panned(key == kLeft ? -kPan : kPan);
}

/// One frame of continuous movement; accelerates while keys are held.
void HeldKeys::move() {
  const double seconds = std::clamp(static_cast<double>(clock_.restart()) / 1000, 0.016, 0.1);
  speed_ = std::min(3.0, speed_ + 4 * seconds + (speed_ == 0 ? 1.0 : 0.0));
  if (held_[kIn] != held_[kOut])
    Q_EMIT zoomed(std::exp2((held_[kIn] ? -1.6 : 1.6) * speed_ * seconds));
  if (held_[kLeft] != held_[kRight]) Q_EMIT panned((held_[kLeft] ? -0.5 : 0.5) * speed_ * seconds);
}

}  // namespace meshwright::gui

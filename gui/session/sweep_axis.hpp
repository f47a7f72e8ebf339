/// An axis of a sweep: a scenario parameter and its values.
#pragma once

#include <QString>
#include <functional>
#include <vector>

#include "gui/session/scenario.hpp"

namespace meshwright::gui {

enum class SweepKnob : std::uint8_t {
  kPipeline,
  kMicrobatches,
  kSchedule,
  kChunks,
  kTensor,
  kData,
  kMicroBatch,
  kRecompute,
  kZero
};
inline constexpr int kSweepKnobCount = 9;

struct SweepValue {
  QString label;
  std::function<void(Scenario&)> put;
  bool is_now = false;  ///< the value of the current scenario
};
struct SweepAxis {
  QString title;
  std::vector<SweepValue> values;  ///< always include the scenario's value
};
QString title_of(SweepKnob knob);
SweepAxis sweep_axis(SweepKnob knob, const Scenario& base);

}  // namespace meshwright::gui

#include "gui/widgets/knob.hpp"

#include <QGridLayout>
#include <QLineEdit>
#include <QSignalBlocker>
#include <algorithm>
#include <cmath>

#include "gui/text/number_text.hpp"

namespace meshwright::gui {
namespace {

constexpr int kTimeSteps = 700;                   ///< slider positions of TimeKnob; 0 is zero
constexpr double kShortest = 1e-6, kDecades = 7;  ///< a microsecond to ten seconds

Ticks time_at(int step) {
  if (step <= 0) return Ticks();
  const double share = static_cast<double>(step - 1) / (kTimeSteps - 1);
  return to_ticks(Seconds(kShortest * std::pow(10.0, kDecades * share)));
}
int step_of(Ticks time) {
  const double seconds = to_seconds(time).value;
  if (seconds <= 0) return 0;
  const double share = std::log10(seconds / kShortest) / kDecades;
  return std::clamp(1 + static_cast<int>(std::lround(share * (kTimeSteps - 1))), 1, kTimeSteps);
}

std::size_t nearest_stop(const std::vector<int>& stops, int value) {
  const auto after = std::lower_bound(stops.begin(), stops.end(), value);
  if (after == stops.end()) return stops.size() - 1;
  const auto index = static_cast<std::size_t>(after - stops.begin());
  if (index > 0 && value - stops[index - 1] < *after - value) return index - 1;
  return index;
}

/// The hint with the symbol used in papers, if any: "p: consecutive groups of layers".
QString hint_of(const KnobText& text) {
  return text.symbol.isEmpty() ? text.hint : QString("<i>%1</i>: %2").arg(text.symbol, text.hint);
}

QLabel* label_of(const KnobText& text, QWidget* buddy) {
  auto* label = new QLabel(
      text.symbol.isEmpty() ? text.label : QString("%1 <i>%2</i>").arg(text.label, text.symbol));
  label->setTextFormat(Qt::RichText);
  label->setToolTip(hint_of(text));
  label->setBuddy(buddy);
  return label;
}

void describe(QWidget* widget, const KnobText& text) {
  widget->setToolTip(hint_of(text));
  widget->setAccessibleName(text.label);
  widget->setAccessibleDescription(text.hint);
}

/// Label and input side by side, with the slider below.
QGridLayout* arrange(QWidget& knob, const KnobText& text, QWidget* input, QSlider* slider) {
  auto* grid = new QGridLayout(&knob);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(6);
  grid->setVerticalSpacing(0);
  grid->addWidget(label_of(text, input), 0, 0);
  grid->addWidget(input, 0, 1);
  grid->addWidget(slider, 1, 0, 1, 2);
  grid->setColumnStretch(0, 1);
  return grid;
}

}  // namespace

std::vector<int> count_stops(int most) {
  std::vector<int> stops;
  for (int value = 1; value <= most; value += std::max(1, value / 16)) stops.push_back(value);
  if (stops.back() != most) stops.push_back(most);
  return stops;
}

std::vector<int> power_stops(int most) {
  std::vector<int> stops;
  for (int value = 1; value <= most; value *= 2) stops.push_back(value);
  return stops;
}

CountKnob::CountKnob(const KnobText& text, std::vector<int> stops, int most, QWidget* parent)
    : QWidget(parent),
      stops_(std::move(stops)),
      slider_(new QSlider(Qt::Horizontal)),
      box_(new QSpinBox),
      problem_(new QLabel) {
  arrange(*this, text, box_, slider_)->addWidget(problem_, 2, 0, 1, 2);
  slider_->setRange(0, static_cast<int>(stops_.size()) - 1);
  slider_->setPageStep(std::max(1, static_cast<int>(stops_.size()) / 8));
  box_->setRange(1, most);
  box_->setKeyboardTracking(false);
  box_->setMinimumWidth(box_->fontMetrics().horizontalAdvance("0000000") + 28);
  problem_->setWordWrap(true);
  problem_->setProperty("role", "problem");
  problem_->hide();
  describe(slider_, text);
  describe(box_, text);
  connect(slider_, &QSlider::valueChanged, this, [this](int step) {
    const QSignalBlocker blocked(box_);
    box_->setValue(stops_[static_cast<std::size_t>(step)]);
    Q_EMIT moved(box_->value());
    if (!slider_->isSliderDown()) Q_EMIT settled();
  });
  connect(slider_, &QSlider::sliderReleased, this, &CountKnob::settled);
  connect(box_, &QSpinBox::valueChanged, this, [this](int value) {
    const QSignalBlocker blocked(slider_);
    slider_->setValue(static_cast<int>(nearest_stop(stops_, value)));
    Q_EMIT moved(value);
    Q_EMIT settled();
  });
}

void CountKnob::show_value(int value) {
  const QSignalBlocker slider_blocked(slider_), box_blocked(box_);
  box_->setValue(value);
  if (!slider_->isSliderDown()) slider_->setValue(static_cast<int>(nearest_stop(stops_, value)));
}

void CountKnob::show_problem(const QString& problem) {
  problem_->setText(problem);
  problem_->setVisible(!problem.isEmpty());
}

TimeKnob::TimeKnob(const KnobText& text, QWidget* parent)
    : QWidget(parent), slider_(new QSlider(Qt::Horizontal)), edit_(new QLineEdit) {
  arrange(*this, text, edit_, slider_);
  slider_->setRange(0, kTimeSteps);
  slider_->setPageStep(kTimeSteps / 7);  // a factor of ten
  edit_->setMaximumWidth(edit_->fontMetrics().horizontalAdvance("00000000 ms") + 12);
  edit_->setAlignment(Qt::AlignRight);
  describe(slider_, text);
  describe(edit_, text);
  connect(slider_, &QSlider::valueChanged, this, [this](int step) {
    value_ = time_at(step);
    edit_->setText(time_text(value_));
    Q_EMIT moved(value_.value);
    if (!slider_->isSliderDown()) Q_EMIT settled();
  });
  connect(slider_, &QSlider::sliderReleased, this, &TimeKnob::settled);
  connect(edit_, &QLineEdit::editingFinished, this, &TimeKnob::take_text);
}

void TimeKnob::take_text() {
  QString text = edit_->text();
  text.replace(QChar(QChar::Nbsp), ' ');
  const std::optional<Ticks> time = time_from_text(text);
  if (!time || time_text(*time) == time_text(value_)) {
    edit_->setText(
        time_text(value_));  // not a time, or unchanged after rounding: keep the exact value
    return;
  }
  show_value(*time);
  Q_EMIT moved(value_.value);
  Q_EMIT settled();
}

void TimeKnob::show_value(Ticks value) {
  const QSignalBlocker blocked(slider_);
  value_ = value;
  edit_->setText(time_text(value));
  if (!slider_->isSliderDown()) slider_->setValue(step_of(value));
}

}  // namespace meshwright::gui

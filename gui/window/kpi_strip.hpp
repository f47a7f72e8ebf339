/// The key figures of the scenario, updated with every change
/// and compared with the pinned snapshot if there is one.
#pragma once

#include <QLabel>
#include <QWidget>
#include <vector>

#include "gui/session/preferences.hpp"
#include "gui/session/simulation.hpp"

namespace meshwright::gui {

class KpiStrip : public QWidget {
  Q_OBJECT
 public:
  explicit KpiStrip(QWidget* parent = nullptr);
  /// Shows dashes if `simulation` is null; grayed out if not `is_current` because the current
  /// parameters are invalid.
  void show_simulation(const Simulation* simulation, const Simulation* snapshot, bool is_current,
                       TimeUnit unit);

 private:
  struct Card {
    QLabel* value;
    QLabel* beside;
  };
  Card add_card(const QString& title, const QString& hint);
  static void show(const Card& card, const QString& value, const QString& beside);
  /// MFU, memory and throughput.
  void show_device_figures(const Simulation& simulation, const Simulation* snapshot);
  Card step_, bubble_, mfu_, memory_, throughput_, bound_;
};

}  // namespace meshwright::gui

/// Training loss per step of a run.
#pragma once

#include <QWidget>
#include <vector>

namespace meshwright::gui {

class LossChart : public QWidget {
  Q_OBJECT
 public:
  explicit LossChart(QWidget* parent = nullptr);
  void clear();
  void add(int step, double loss);
  std::size_t size() const { return losses_.size(); }
  QSize sizeHint() const override { return {420, 220}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  std::vector<std::pair<double, double>> losses_;  ///< (step, loss)
};

}  // namespace meshwright::gui

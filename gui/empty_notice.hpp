/// What stands in place of tables and charts that have nothing to show yet: what would be there,
/// and a button that brings it.
#pragma once

#include <QWidget>
#include <functional>

namespace meshwright::gui {

class EmptyNotice : public QWidget {
  Q_OBJECT
 public:
  struct Text {
    QString title, text, button;  ///< without `button` there is none
  };
  /// Hides `content` until give_way().
  EmptyNotice(const Text& text, const std::function<void()>& pressed, QWidget* content);
  /// From now on the content is shown.
  void give_way();

 private:
  QWidget* content_;
};

}  // namespace meshwright::gui

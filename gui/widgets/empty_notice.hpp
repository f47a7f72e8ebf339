/// Placeholder for tables and charts without content: explains
/// what would be shown, with a button that creates it.
#pragma once

#include <QWidget>
#include <functional>

class QBoxLayout;

namespace meshwright::gui {

class EmptyNotice : public QWidget {
  Q_OBJECT
 public:
  struct Text {
    QString title, text, button;  ///< no button if `button` is empty
  };
  /// Adds itself and `content` to `place`; `content` is hidden until give_way() is called.
  EmptyNotice(const Text& text, const std::function<void()>& pressed, QWidget* content,
              QBoxLayout& place);
  /// Shows the content instead of the notice.
  void give_way();

 private:
  QWidget* content_;
};

}  // namespace meshwright::gui

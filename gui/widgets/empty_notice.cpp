#include "gui/widgets/empty_notice.hpp"

#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace meshwright::gui {

EmptyNotice::EmptyNotice(const Text& text, const std::function<void()>& pressed, QWidget* content,
                         QBoxLayout& place)
    : content_(content) {
  place.addWidget(this, 1);
  place.addWidget(content_, 1);
  content_->hide();
  auto* column = new QVBoxLayout(this);
  column->addStretch(2);
  const auto add_label = [&](const QString& words, const char* role) {
    auto* label = new QLabel(words);
    label->setProperty("role", role);
    label->setAlignment(Qt::AlignCenter);
    label->setWordWrap(true);
    column->addWidget(label);
  };
  add_label(text.title, "subtitle");
  add_label(text.text, "faint");
  if (!text.button.isEmpty()) {
    auto* button = new QPushButton(text.button);
    button->setToolTip(text.text);
    connect(button, &QPushButton::clicked, this, pressed);
    column->addSpacing(8);
    column->addWidget(button, 0, Qt::AlignCenter);
  }
  column->addStretch(3);
}

void EmptyNotice::give_way() {
  hide();
  content_->show();
}

}  // namespace meshwright::gui

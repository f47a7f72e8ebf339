/// UTF-8 text of the libraries as a QString.
#pragma once

#include <QString>
#include <string_view>

namespace meshwright::gui {

inline QString qstring_of(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

}  // namespace meshwright::gui

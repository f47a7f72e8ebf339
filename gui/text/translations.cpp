#include "gui/text/translations.hpp"

#include <QCoreApplication>
#include <QLibraryInfo>
#include <QLocale>
#include <QTranslator>

namespace meshwright::gui {

std::vector<Language> languages() {
  return {{"en", "English"}, {"zh_CN", QString::fromUtf8("简体中文")}};
}

void speak(QCoreApplication& application, const QString& code) {
  const QLocale locale = code.isEmpty() ? QLocale::system() : QLocale(code);
  QLocale::setDefault(locale);
  // Qt's own texts, such as dialog buttons. They stay English if the package is not installed.
  auto* of_qt = new QTranslator(&application);
  if (of_qt->load(locale, "qtbase", "_", QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
    QCoreApplication::installTranslator(of_qt);
  auto* own = new QTranslator(&application);
  if (own->load(locale, "meshwright", "_", ":/i18n")) QCoreApplication::installTranslator(own);
}

}  // namespace meshwright::gui

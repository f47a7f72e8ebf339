/// The languages of the user interface.
#pragma once

#include <QString>
#include <vector>

class QCoreApplication;

namespace meshwright::gui {

struct Language {
  QString code;      ///< "zh_CN"
  QString own_name;  ///< "简体中文"
};
std::vector<Language> languages();

/// Installs the translation for a language (empty for the system language). Without a translation
/// the texts are English, the language of the sources.
void speak(QCoreApplication& application, const QString& code);

}  // namespace meshwright::gui

/// Languages that the program speaks.
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

/// Installs the texts of a language (empty: the system's) for the rest of the run. English, which
/// is in the sources, if there are none.
void speak(QCoreApplication& application, const QString& code);

}  // namespace meshwright::gui

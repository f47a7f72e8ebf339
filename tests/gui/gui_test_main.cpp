// One QApplication for all cases, on the offscreen platform unless the caller names another.
#include <gtest/gtest.h>

#include <QApplication>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>

// LeakSanitizer of GCC 12 crashes when it looks at the thread-local storage of libraries that were
// loaded later, such as GLib, which a plug-in of Qt loads. Without it, what GLib keeps there looks
// leaked.
extern "C" const char* __lsan_default_options();  // NOLINT: names of the sanitizer
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_options() { return "use_tls=0"; }
extern "C" const char* __lsan_default_suppressions() { return "leak:libglib-2.0\nleak:libgvc\n"; }

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);
  // ctest runs one process per case, several at a time: each has settings of its own.
  const QTemporaryDir settings;
  QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, settings.path());
  QApplication application(argc, argv);
  QCoreApplication::setOrganizationName("meshwright-test");
  QCoreApplication::setApplicationName("gui_test");
  return RUN_ALL_TESTS();
}

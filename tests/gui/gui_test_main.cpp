// One QApplication for all cases, on the offscreen platform unless the caller names another.
#include <gtest/gtest.h>

#include <QApplication>
#include <QStandardPaths>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QStandardPaths::setTestModeEnabled(true);  // settings of tests never touch those of the user
  QApplication application(argc, argv);
  QCoreApplication::setOrganizationName("meshwright-test");
  QCoreApplication::setApplicationName("gui_test");
  return RUN_ALL_TESTS();
}

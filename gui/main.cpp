// The desktop program: meshwright-gui [FILE...] [--screen NAME] [--screenshot OUT.png]
#include <QApplication>
#include <QCommandLineParser>
#include <QTextStream>
#include <QTimer>

#include "gui/actions.hpp"
#include "gui/explore_screen.hpp"
#include "gui/main_window.hpp"
#include "gui/screenshot.hpp"
#include "gui/translations.hpp"

namespace {

using namespace meshwright::gui;

constexpr int kExitUsage = 2, kExitMissingEnvironment = 4;

void add_options(QCommandLineParser& parser) {
  parser.setApplicationDescription(
      "Explore, plan and compare the parallel training of large models.");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument("files", "plans, traces, schedules, calibrations, models, clusters",
                               "[FILE...]");
  parser.addOption({"screen", "the screen to show first: welcome, explore, …", "NAME"});
  parser.addOption({"list-screens", "print the names of all screens and end"});
  parser.addOption({"example", "a built-in example to open, such as textbook", "NAME"});
  parser.addOption({"do", "an action, such as plans.search; may be given several times", "ACTION"});
  parser.addOption({"theme", "system, light, dark or high-contrast", "NAME"});
  parser.addOption({"language", "en or zh_CN", "CODE"});
  parser.addOption({"size", "of the window, such as 1440x900", "WxH"});
  parser.addOption({"screenshot", "write the window to a PNG and end", "FILE"});
  parser.addOption({"export",
                    "write what the timeline of Explore shows and end: .png, .svg, .pdf, .csv or "
                    ".pftrace",
                    "FILE"});
}

int refuse(const QString& what) {
  QTextStream(stderr) << "error: " << what << "\n";
  return kExitUsage;
}

/// What the command line says, for this run only.
bool override_preferences(const QCommandLineParser& parser, Preferences& preferences) {
  PreferenceValues values = preferences.values();
  if (parser.isSet("theme")) {
    const auto theme = theme_from_name(parser.value("theme"));
    if (!theme) return false;
    values.theme = *theme;
  }
  if (parser.isSet("language")) values.language = parser.value("language");
  preferences.override_for_now(values);
  return true;
}

/// The actions of --do, each when the one before has done its work; what is not known is returned.
QString do_actions(MainWindow& window, const QStringList& names) {
  for (const QString& name : names) {
    QAction* action = window.actions().find(name);
    if (action == nullptr) return name;
    wait_until_settled(window);
    action->trigger();
  }
  return {};
}

int export_timeline(MainWindow& window, const QString& path) {
  window.show_screen("explore");
  wait_until_settled(window);
  auto& explore = static_cast<ExploreScreen&>(*window.current_screen());
  try {
    write_snapshot(explore.view().snapshot(), path.toStdString());
    return 0;
  } catch (const meshwright::InputError& error) {
    QTextStream(stderr) << QString::fromStdString(format(error.diagnostics().front()));
    return kExitUsage;
  } catch (const meshwright::RuntimeFailure& failure) {
    QTextStream(stderr) << QString::fromStdString(format(failure.diagnostic()));
    return kExitMissingEnvironment;
  }
}

QSize size_from(const QString& text) {
  const QStringList parts = text.split('x');
  return parts.size() == 2 ? QSize(parts[0].toInt(), parts[1].toInt()) : QSize();
}

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  QCoreApplication::setOrganizationName("meshwright");
  QCoreApplication::setApplicationName("meshwright-gui");
  QCoreApplication::setApplicationVersion(MESHWRIGHT_VERSION);
  QCommandLineParser parser;
  add_options(parser);
  parser.process(application);

  Workbench workbench;
  if (!override_preferences(parser, workbench.preferences()))
    return refuse(QString("--theme: there is no theme '%1'; known: system, light, dark, "
                          "high-contrast")
                      .arg(parser.value("theme")));
  speak(application, workbench.preferences().values().language);
  MainWindow window(workbench);
  if (parser.isSet("list-screens")) {
    for (const Screen* screen : window.screens()) QTextStream(stdout) << screen->name() << "\n";
    return 0;
  }
  if (parser.isSet("size")) window.resize(size_from(parser.value("size")));
  if (parser.isSet("example")) {
    QAction* example = window.actions().find("example." + parser.value("example"));
    if (example == nullptr)
      return refuse(QString("--example: there is no example '%1'").arg(parser.value("example")));
    example->trigger();
  }
  const QString screen = parser.value("screen");
  if (!screen.isEmpty() && window.find_screen(screen) == nullptr)
    return refuse(QString("--screen: there is no screen '%1'").arg(screen));
  if (!screen.isEmpty()) window.show_screen(screen);
  window.show();
  workbench.open(parser.positionalArguments());
  if (const QString unknown = do_actions(window, parser.values("do")); !unknown.isEmpty())
    return refuse(QString("--do: there is no action '%1'").arg(unknown));
  if (parser.isSet("screenshot")) {
    const QString problem = save_screenshot(window, parser.value("screenshot"));
    if (problem.isEmpty()) return 0;
    QTextStream(stderr) << "error: --screenshot: " << problem << "\n";
    return kExitMissingEnvironment;
  }
  if (parser.isSet("export")) return export_timeline(window, parser.value("export"));
  return QApplication::exec();
}

// The desktop program: meshwright-gui [FILE...] [--screen NAME] [--screenshot OUT.png]
#include <QApplication>
#include <QCommandLineParser>
#include <QIcon>
#include <QTextStream>
#include <QTimer>
#include <algorithm>
#include <array>
#include <string_view>

#include "gui/screens/explore_screen.hpp"
#include "gui/text/translations.hpp"
#include "gui/widgets/actions.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/screenshot.hpp"

namespace {

using namespace meshwright::gui;

constexpr int kExitUsage = 2, kExitMissingEnvironment = 4;

void add_options(QCommandLineParser& parser) {
  parser.setApplicationDescription("Explore, plan and compare parallel training of large models.");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument(
      "files", "plan, trace, schedule, calibration, model, ONNX or cluster files to open",
      "[FILE...]");
  parser.addOption({"screen", "screen to show first (see --list-screens)", "NAME"});
  parser.addOption({"list-screens", "print the names of all screens and exit"});
  parser.addOption({"example", "open a built-in example, such as textbook", "NAME"});
  parser.addOption({"do", "run an action, such as plans.search; can be repeated", "ACTION"});
  parser.addOption({"theme", "color theme: system, light, dark or high-contrast", "NAME"});
  parser.addOption({"language", "user interface language: en or zh_CN", "CODE"});
  parser.addOption({"size", "window size, such as 1440x900", "WxH"});
  parser.addOption({"screenshot", "save a screenshot of the window as PNG and exit", "FILE"});
  parser.addOption({"export",
                    "export the timeline of the Explore screen and exit; the extension selects the "
                    "format: .png, .svg, .pdf, .csv or .pftrace",
                    "FILE"});
}

int refuse(const QString& what) {
  QTextStream(stderr) << "error: " << what << "\n";
  return kExitUsage;
}

/// Applies command-line options to the preferences, for this run only.
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

/// Runs the actions of --do, each after the previous
/// one has finished; returns the first unknown name.
QString do_actions(MainWindow& window, const QStringList& names) {
  for (const QString& name : names) {
    QAction* action = window.actions().find(name);
    if (action == nullptr) return name;
    wait_until_settled(window);
    action->trigger();
  }
  return {};
}

QStringList example_names(MainWindow& window) {
  QStringList names;
  for (const ActionEntry& entry : window.actions().entries())
    if (entry.name.startsWith("example.")) names += entry.name.section('.', 1);
  return names;
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

/// Whether Qt would find no display. Only X11 and Wayland name theirs in the environment.
bool lacks_display(int argc, char** argv) {
  const bool is_chosen = std::any_of(argv + 1, argv + argc, [](const char* argument) {
    return std::string_view(argument).ends_with("-platform");
  });
  constexpr auto is_unset = [](const char* name) { return qEnvironmentVariableIsEmpty(name); };
  return !is_chosen && is_unset("DISPLAY") && is_unset("WAYLAND_DISPLAY") &&
         is_unset("QT_QPA_PLATFORM");
}

/// For options that print or write something and show no window.
bool needs_no_display(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](std::string_view argument) {
    const std::string_view option = argument.substr(0, argument.find('='));
    constexpr std::array<std::string_view, 8> kWithoutWindow{
        "-h",        "--help",         "--help-all",   "-v",
        "--version", "--list-screens", "--screenshot", "--export"};
    return std::ranges::find(kWithoutWindow, option) != kWithoutWindow.end();
  });
}

QSize size_from(const QString& text) {
  const QStringList parts = text.split('x');
  return parts.size() == 2 ? QSize(parts[0].toInt(), parts[1].toInt()) : QSize();
}

}  // namespace

int main(int argc, char** argv) {
  if (lacks_display(argc, argv)) {
    if (!needs_no_display(argc, argv)) {
      QTextStream(stderr)
          << "error: no display: neither DISPLAY nor WAYLAND_DISPLAY is set\n"
             "  hint: start it in a desktop session, or use --screenshot or --export\n";
      return kExitMissingEnvironment;
    }
    qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  QApplication application(argc, argv);
  QCoreApplication::setOrganizationName("meshwright");
  QCoreApplication::setApplicationName("meshwright-gui");
  QCoreApplication::setApplicationVersion(MESHWRIGHT_VERSION);
  // Installed with the package: see gui/desktop.
  QGuiApplication::setDesktopFileName("meshwright-gui");
  QGuiApplication::setWindowIcon(QIcon::fromTheme("meshwright"));
  QCommandLineParser parser;
  add_options(parser);
  parser.process(application);

  Workbench workbench;
  if (!override_preferences(parser, workbench.preferences()))
    return refuse(QString("--theme: invalid value '%1'\n  hint: expected one of: system, light, "
                          "dark, high-contrast")
                      .arg(parser.value("theme")));
  speak(application, workbench.preferences().values().language);
  MainWindow window(workbench);
  if (parser.isSet("list-screens")) {
    for (const Screen* screen : window.screens())
      QTextStream(stdout) << screen->traits().name << "\n";
    return 0;
  }
  if (parser.isSet("size")) window.resize(size_from(parser.value("size")));
  if (parser.isSet("example")) {
    QAction* example = window.actions().find("example." + parser.value("example"));
    if (example == nullptr)
      return refuse(QString("--example: unknown example '%1'\n  hint: expected one of: %2")
                        .arg(parser.value("example"), example_names(window).join(", ")));
    example->trigger();
  }
  const QString screen = parser.value("screen");
  if (!screen.isEmpty() && window.find_screen(screen) == nullptr)
    return refuse(
        QString("--screen: unknown screen '%1'\n  hint: run meshwright-gui --list-screens")
            .arg(screen));
  if (!screen.isEmpty()) window.show_screen(screen);
  window.show();
  workbench.open(parser.positionalArguments());
  if (const QString unknown = do_actions(window, parser.values("do")); !unknown.isEmpty())
    return refuse(QString("--do: unknown action '%1'").arg(unknown));
  if (parser.isSet("screenshot")) {
    const QString problem = save_screenshot(window, parser.value("screenshot"));
    if (problem.isEmpty()) return 0;
    QTextStream(stderr) << "error: --screenshot: " << problem << "\n";
    return kExitMissingEnvironment;
  }
  if (parser.isSet("export")) return export_timeline(window, parser.value("export"));
  return QApplication::exec();
}

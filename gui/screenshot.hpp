/// The window as a picture, once everything that it shows has been worked out.
#pragma once

#include <QString>

namespace meshwright::gui {

class MainWindow;

/// False if something is still being worked out after `patience_ms`.
bool wait_until_settled(MainWindow& window, int patience_ms = 60'000);

/// Waits for jobs and painters, at most `patience_ms`, and writes a PNG. Returns the reason if that
/// failed, else an empty text.
QString save_screenshot(MainWindow& window, const QString& path, int patience_ms = 60'000);

}  // namespace meshwright::gui

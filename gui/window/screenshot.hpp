/// Screenshots of the window, taken after all pending work has finished.
#pragma once

#include <QString>

namespace meshwright::gui {

class MainWindow;

/// Returns false if work is still pending after `timeout_ms`.
bool wait_until_settled(MainWindow& window, int timeout_ms = 60'000);

/// Waits for jobs and painters, at most `timeout_ms`, and
/// writes a PNG. Returns an error message, empty on success.
QString save_screenshot(MainWindow& window, const QString& path, int timeout_ms = 60'000);

}  // namespace meshwright::gui

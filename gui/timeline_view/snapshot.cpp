#include "gui/timeline_view/snapshot.hpp"

#include <QBuffer>
#include <QFileInfo>
#include <QPainter>
#include <QPdfWriter>
#ifdef MESHWRIGHT_HAS_SVG
#include <QSvgGenerator>
#endif

#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "gui/timeline_view/table_model.hpp"

namespace meshwright::gui {
namespace {

constexpr int kLabelPixels = 11;

std::shared_ptr<const LabelFonts> label_fonts(const TimelineSnapshot& snapshot, double scale) {
  QFont label = snapshot.font;
  label.setPixelSize(qRound(kLabelPixels * scale));
  return std::make_shared<const LabelFonts>(label);
}

void paint_as_vectors(const TimelineSnapshot& snapshot, QPainter& painter) {
  const QColor background = QColor::fromRgba(snapshot.scene.style.colors.background);
  painter.fillRect(QRect(QPoint(), snapshot.size), background);
  QFont label = snapshot.font;
  label.setPixelSize(kLabelPixels);
  painter.setFont(label);
  painter.save();
  painter.setClipRect(
      QRect(snapshot.body, QSize(snapshot.scene.window.width, snapshot.scene.height)));
  painter.translate(snapshot.body);
  paint_scene_as_vectors(snapshot.scene, painter);
  painter.restore();
  painter.drawPicture(QPoint(), snapshot.frame);
}

QByteArray to_png(const TimelineSnapshot& snapshot, double scale) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (!to_image(snapshot, scale).save(&buffer, "PNG"))
    throw RuntimeFailure({"PNG", "cannot encode the image", "use a smaller window"});
  return bytes;
}

QByteArray to_pdf(const TimelineSnapshot& snapshot) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QPdfWriter writer(&buffer);
  writer.setResolution(snapshot.dots_per_inch);
  writer.setPageMargins(QMarginsF());
  constexpr double kPointsPerInch = 72;
  writer.setPageSize(
      QPageSize(QSizeF(snapshot.size) * kPointsPerInch / snapshot.dots_per_inch, QPageSize::Point));
  QPainter painter(&writer);
  paint_as_vectors(snapshot, painter);
  painter.end();
  return bytes;
}

#ifdef MESHWRIGHT_HAS_SVG
QByteArray to_svg(const TimelineSnapshot& snapshot) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setResolution(snapshot.dots_per_inch);
  generator.setSize(snapshot.size);
  generator.setViewBox(QRect(QPoint(), snapshot.size));
  generator.setTitle(QString::fromStdString(snapshot.scene.content.tracks->title));
  QPainter painter(&generator);
  paint_as_vectors(snapshot, painter);
  painter.end();
  return bytes;
}
#endif

/// The file content for this suffix; nullopt for unknown suffixes.
std::optional<std::string> encoded(const TimelineSnapshot& snapshot, const QString& suffix,
                                   double scale) {
  const TimeWindow& window = snapshot.scene.window;
  if (suffix == QLatin1String("png")) return to_png(snapshot, scale).toStdString();
  if (suffix == QLatin1String("pdf")) return to_pdf(snapshot).toStdString();
#ifdef MESHWRIGHT_HAS_SVG
  if (suffix == QLatin1String("svg")) return to_svg(snapshot).toStdString();
#endif
  if (suffix == QLatin1String("csv")) return to_csv(snapshot).toStdString();
  if (suffix == QLatin1String("pftrace"))
    return to_pftrace(
        timeline_of_tracks(*snapshot.scene.content.tracks, snapshot.rows, window.from, window.to));
  return std::nullopt;
}

}  // namespace

QImage to_image(const TimelineSnapshot& snapshot, double scale) {
  QImage image(snapshot.size * scale, QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(snapshot.scene.style.colors.background);
  QPainter painter(&image);
  if (snapshot.scene.content.tracks != nullptr) {
    TimelineScene scene = snapshot.scene;
    scene.style.scale = scale;
    scene.fonts = label_fonts(snapshot, scale);
    painter.drawImage(snapshot.body, paint_scene(scene));
  }
  painter.drawPicture(QPoint(), snapshot.frame);
  return image;
}

QString to_csv(const TimelineSnapshot& snapshot) {
  TimelineTableModel table;
  table.show(snapshot.scene.content.tracks, snapshot.scene.content.causes, snapshot.rows,
             snapshot.scene.window.from, snapshot.scene.window.to);
  return table.to_csv();
}

QString to_table(const TimelineSnapshot& snapshot) {
  if (!snapshot.selected) return to_csv(snapshot);
  const TimelineScene& scene = snapshot.scene;
  return QString::fromStdString(to_tsv(
      *scene.content.tracks,
      area_statistics(*scene.content.tracks, *snapshot.selected, scene.content.causes.get())));
}

QString area_text(const TimelineSnapshot& snapshot, AreaFormat format) {
  const TimelineScene& scene = snapshot.scene;
  const TimelineArea visible{.rows = snapshot.rows,
                             .from = std::max(scene.window.from, Nanoseconds(0)),
                             .to = std::min(scene.window.to, scene.content.tracks->end)};
  const AreaStatistics statistics = area_statistics(
      *scene.content.tracks, snapshot.selected.value_or(visible), scene.content.causes.get());
  return QString::fromStdString(format == AreaFormat::kJson
                                    ? to_json(*scene.content.tracks, statistics)
                                    : to_markdown(*scene.content.tracks, statistics));
}

void write_snapshot(const TimelineSnapshot& snapshot, const std::string& path, double scale) {
  if (snapshot.scene.content.tracks == nullptr)
    throw InputError(Diagnostic{path, "the timeline is empty", "simulate a plan first"});
  const QString suffix = QFileInfo(QString::fromStdString(path)).suffix().toLower();
  const std::optional<std::string> bytes = encoded(snapshot, suffix, scale);
  if (!bytes)
    throw InputError(Diagnostic{
        path, "unsupported format '." + suffix.toStdString() + "'",
        std::string("use .png, .pdf, ") + (can_write_svg() ? ".svg, " : "") + ".csv or .pftrace"});
  write_file(path, *bytes);
}

bool can_write_svg() {
#ifdef MESHWRIGHT_HAS_SVG
  return true;
#else
  return false;
#endif
}

}  // namespace meshwright::gui

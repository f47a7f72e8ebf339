/// What is on the screen, as picture, vector graphics, table and trace file.
#include <QApplication>
#include <QBuffer>
#include <QClipboard>
#include <QFileInfo>
#include <QMimeData>
#include <QPainter>
#include <QPdfWriter>
#include <QSaveFile>
#ifdef MESHWRIGHT_HAS_SVG
#include <QSvgGenerator>
#endif
#include <algorithm>

#include "core/error.hpp"
#include "core/io_file.hpp"
#include "core/io_pftrace.hpp"
#include "gui/timeline_table_model.hpp"
#include "gui/timeline_view.hpp"
#include "gui/timeline_view_parts.hpp"

namespace meshwright::gui {
namespace {

/// The page of a vector export: rulers and names as the widget paints them, rows as vectors.
constexpr int kDotsPerInch = 96;

QString in_words(const Diagnostic& diagnostic) {
  return QString::fromStdString(diagnostic.what +
                                (diagnostic.hint.empty() ? "" : "\n" + diagnostic.hint));
}

}  // namespace

void TimelineView::wait_for_painters() { parts_->queue->wait(); }

QImage TimelineView::to_image(double scale) {
  Parts& p = *parts_;
  const TimelineGeometry geometry = geometry_of_parts();
  QImage image(size() * scale, QImage::Format_RGB32);
  image.setDevicePixelRatio(scale);
  image.fill(p.style.colours.background);
  QPainter painter(&image);
  if (p.tracks == nullptr || p.arrangement == nullptr) {
    painter.setPen(QColor::fromRgba(p.style.colours.faint_text));
    painter.drawText(rect(), Qt::AlignCenter, p.placeholder);
    return image;
  }
  TimelineScene scene = p.scene(geometry);
  scene.style.scale = scale;
  QFont label = font();
  label.setPixelSize(qRound(11 * scale));
  scene.font = std::make_shared<const LabelFont>(label);
  painter.drawImage(geometry.body.topLeft(), paint_scene(scene));
  paint_frame(painter, geometry);
  return image;
}

/// All but the rows; without pointer and tip.
void TimelineView::paint_frame(QPainter& painter, const TimelineGeometry& geometry) {
  Parts& p = *parts_;
  const auto pointer = std::exchange(p.pointer, std::nullopt);
  paint_gutter(painter, geometry);
  paint_overview(painter, geometry);
  paint_ruler(painter, geometry);
  paint_overlay(painter, geometry);
  p.pointer = pointer;
}

void TimelineView::paint_vectors(QPainter& painter) {
  Parts& p = *parts_;
  const TimelineGeometry geometry = geometry_of_parts();
  painter.fillRect(rect(), QColor::fromRgba(p.style.colours.background));
  QFont label = font();
  label.setPixelSize(11);
  painter.setFont(label);
  painter.save();
  painter.setClipRect(geometry.body);
  painter.translate(geometry.body.topLeft());
  paint_scene_as_vectors(p.scene(geometry), painter);
  painter.restore();
  paint_frame(painter, geometry);
}

std::vector<std::size_t> TimelineView::visible_rows() const {
  const Parts& p = *parts_;
  std::vector<std::size_t> rows;
  for (const Lane& lane : p.arrangement->lanes)
    if (lane.kind == LaneKind::kSlices && !lane.is_measured)
      rows.push_back(static_cast<std::size_t>(lane.row));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

QString TimelineView::export_to(const QString& path, double scale) {
  Parts& p = *parts_;
  if (p.tracks == nullptr) return tr("there is nothing to save yet");
  const QString suffix = QFileInfo(path).suffix().toLower();
  try {
    if (suffix == QLatin1String("png")) {
      QByteArray bytes;
      QBuffer buffer(&bytes);
      buffer.open(QIODevice::WriteOnly);
      if (!to_image(scale).save(&buffer, "PNG")) return tr("the picture could not be encoded");
      write_file(path.toStdString(),
                 std::string(bytes.constData(), static_cast<std::size_t>(bytes.size())));
    } else if (suffix == QLatin1String("pdf")) {
      QByteArray bytes;
      QBuffer buffer(&bytes);
      buffer.open(QIODevice::WriteOnly);
      {
        QPdfWriter writer(&buffer);
        writer.setResolution(kDotsPerInch);
        writer.setPageMargins(QMarginsF());
        writer.setPageSize(
            QPageSize(QSizeF(width(), height()) * 72 / kDotsPerInch, QPageSize::Point));
        QPainter painter(&writer);
        paint_vectors(painter);
      }
      write_file(path.toStdString(),
                 std::string(bytes.constData(), static_cast<std::size_t>(bytes.size())));
#ifdef MESHWRIGHT_HAS_SVG
    } else if (suffix == QLatin1String("svg")) {
      QByteArray bytes;
      QBuffer buffer(&bytes);
      buffer.open(QIODevice::WriteOnly);
      {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setResolution(kDotsPerInch);
        generator.setSize(size());
        generator.setViewBox(rect());
        generator.setTitle(QString::fromStdString(p.tracks->title));
        QPainter painter(&generator);
        paint_vectors(painter);
      }
      write_file(path.toStdString(),
                 std::string(bytes.constData(), static_cast<std::size_t>(bytes.size())));
#endif
    } else if (suffix == QLatin1String("csv")) {
      write_file(path.toStdString(), visible_table().toStdString());
    } else if (suffix == QLatin1String("pftrace")) {
      write_file(path.toStdString(), to_pftrace(timeline_of_tracks(*p.tracks, visible_rows(),
                                                                   p.window.from, p.window.to)));
    } else {
      return tr("'.%1' is not known here; known: .png .pdf%2 .csv .pftrace")
          .arg(suffix, has_svg() ? QStringLiteral(" .svg") : QString());
    }
  } catch (const InputError& error) {
    return in_words(error.diagnostics().front());
  } catch (const RuntimeFailure& failure) {
    return in_words(failure.diagnostic());
  }
  return {};
}

bool TimelineView::has_svg() {
#ifdef MESHWRIGHT_HAS_SVG
  return true;
#else
  return false;
#endif
}

QString TimelineView::visible_table() const {
  const Parts& p = *parts_;
  TimelineTableModel table;
  table.show(p.tracks, p.causes, visible_rows(), p.window.from, p.window.to);
  return table.to_csv();
}

void TimelineView::fill_table(TimelineTableModel& table) const {
  const Parts& p = *parts_;
  table.show(p.tracks, p.causes,
             p.arrangement == nullptr ? std::vector<std::size_t>{} : visible_rows(), p.window.from,
             p.window.to);
}

void TimelineView::copy_image() { QApplication::clipboard()->setImage(to_image(2.0)); }

/// What is selected: statistics of the area, or else the visible slices.
void TimelineView::copy_table() {
  const Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  const QString text = p.area ? QString::fromStdString(to_tsv(
                                    *p.tracks, area_statistics(*p.tracks, *p.area, p.causes.get())))
                              : visible_table();
  QApplication::clipboard()->setText(text);
}

}  // namespace meshwright::gui

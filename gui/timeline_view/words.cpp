#include "gui/timeline_view/words.hpp"

#include <QLocale>
#include <QStringList>
#include <algorithm>
#include <array>

#include "gui/text/qstring_of.hpp"
#include "gui/timeline/ruler.hpp"

namespace meshwright::gui {
namespace {

class Words {
  Q_DECLARE_TR_FUNCTIONS(Timeline)
};

QString time_text(Nanoseconds time) { return QString::fromStdString(format_time(time)); }

QString cause_text(IdleCause cause) {
  constexpr std::array<const char*, kIdleCauseCount> kNames{
      QT_TRANSLATE_NOOP("Timeline", "warm-up"), QT_TRANSLATE_NOOP("Timeline", "drain"),
      QT_TRANSLATE_NOOP("Timeline", "dependency"), QT_TRANSLATE_NOOP("Timeline", "communication"),
      QT_TRANSLATE_NOOP("Timeline", "idle")};
  static_assert(kNames.back() != nullptr);
  return Words::tr(kNames[static_cast<std::size_t>(cause)]);
}

}  // namespace

QString describe_cause(const TimelineTracks& tracks, std::size_t slice) {
  const TimelineRow& row = tracks.rows[tracks.row_of(slice)];
  const SliceLabel& label = tracks.label_of(slice);
  QString name = QString::fromStdString(short_name(tracks, slice));
  if (tracks.kind[slice] == SliceKind::kSend || tracks.kind[slice] == SliceKind::kReceive)
    return Words::tr("message on rank %1 (%2)")
        .arg(row.rank)
        .arg(time_text(tracks.duration_of(slice)));
  if (label.stage >= 0) return Words::tr("%1 of stage %2").arg(name).arg(label.stage);
  if (row.rank >= 0) return Words::tr("%1 of rank %2").arg(name).arg(row.rank);
  return name;
}

QString describe_slice(const TimelineTracks& tracks, const TimelineCauses* causes,
                       std::size_t slice) {
  const TimelineRow& row = tracks.rows[tracks.row_of(slice)];
  const SliceLabel& label = tracks.label_of(slice);
  QStringList parts{QString::fromStdString(short_name(tracks, slice))};
  if (row.rank >= 0)
    parts << Words::tr("rank %1, %2").arg(row.rank).arg(QString::fromStdString(row.label));
  else
    parts << QString::fromStdString(row.label);
  if (label.stage >= 0) parts << Words::tr("stage %1").arg(label.stage);
  parts << Words::tr("%1 starting at %2")
               .arg(time_text(tracks.duration_of(slice)), time_text(tracks.start_of(slice)));
  if (causes != nullptr && slice < causes->slack_ns.size()) {
    const Nanoseconds slack(causes->slack_ns[slice]);
    if (causes->is_critical[slice])
      parts << Words::tr("on the critical path");
    else  // there may be several critical paths, of which one is shown
      parts << (slack == Nanoseconds(0) ? Words::tr("no slack")
                                        : Words::tr("slack %1").arg(time_text(slack)));
  }
  return parts.join(QStringLiteral(" · "));
}

QString describe_bubble(const TimelineTracks& tracks, const TimelineCauses* causes,
                        const Bubble& bubble) {
  QStringList parts{Words::tr("idle for %1").arg(time_text(bubble.to - bubble.from))};
  if (causes == nullptr) return parts.front();
  if (bubble.row < causes->idle_of_row.size())
    for (const IdleSpan& span : causes->idle_of_row[bubble.row])
      if (span.from < bubble.to && bubble.from < span.to)
        parts << Words::tr("%1 %2").arg(cause_text(span.cause), time_text(span.to - span.from));
  if (bubble.slice_after < 0) return parts.join(QStringLiteral(" · "));
  QStringList chain;
  const auto slices =
      chain_of_causes(*causes, tracks, static_cast<std::size_t>(bubble.slice_after), 5);
  for (const std::uint32_t slice : slices) chain << describe_cause(tracks, slice);
  if (!chain.isEmpty())
    parts << Words::tr("%1 waits for %2")
                 .arg(describe_cause(tracks, static_cast<std::size_t>(bubble.slice_after)),
                      chain.join(QStringLiteral(" ← ")));
  return parts.join(QStringLiteral(" · "));
}

QString describe_mixture(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                         Nanoseconds to) {
  const Nanoseconds first = std::max(from, Nanoseconds(0)), last = std::min(to, tracks.end);
  if (last <= first) return {};
  const BusyTimes busy = busy_times(tracks, row, first, last);
  QStringList parts;
  const QLocale locale;
  const auto add = [&](const QString& name, Nanoseconds time) {
    if (time > Nanoseconds(0))
      parts << QStringLiteral("%1 %2 %").arg(
          name, locale.toString(100 * ratio(time, last - first), 'f', 1));
  };
  for (std::size_t k = 0; k < kSliceKindCount; ++k)
    add(qstring_of(name_of(static_cast<SliceKind>(k))), busy[k]);
  add(Words::tr("idle"), last - first - total(busy));
  return Words::tr("over %1: %2").arg(time_text(last - first), parts.join(QStringLiteral(", ")));
}

}  // namespace meshwright::gui

#include "gui/screens/slice_text.hpp"

#include <QObject>
#include <array>
#include <numeric>

#include "gui/text/number_text.hpp"
#include "gui/text/part_names.hpp"
#include "gui/text/qstring_of.hpp"

namespace meshwright::gui {
namespace {

QString html_of(std::string_view text) { return qstring_of(text).toHtmlEscaped(); }

QString duration(Nanoseconds time, TimeUnit unit) {
  return time_text(Ticks(time.value * kTicksPerNanosecond), unit);
}

/// An HTML table with two columns.
class Table {
 public:
  void row(const QString& name, const QString& value) {
    html_ += QString("<tr><td style='padding-right:12px'>%1</td><td align='right'>%2</td></tr>")
                 .arg(name, value);
  }
  QString html() const { return html_.isEmpty() ? html_ : "<table>" + html_ + "</table>"; }

 private:
  QString html_;
};

QString cause_text(IdleCause cause) {
  constexpr std::array<const char*, kIdleCauseCount> kNames{
      QT_TRANSLATE_NOOP("QObject", "warm-up"), QT_TRANSLATE_NOOP("QObject", "drain"),
      QT_TRANSLATE_NOOP("QObject", "waiting for other stages"),
      QT_TRANSLATE_NOOP("QObject", "waiting for communication"),
      QT_TRANSLATE_NOOP("QObject", "unknown")};
  static_assert(kNames.back() != nullptr);
  return QObject::tr(kNames[static_cast<std::size_t>(cause)]);
}

/// "F7 of stage 3 on rank 24"
QString place_text(const TimelineTracks& tracks, std::size_t slice) {
  const TimelineRow& row = tracks.rows[tracks.row_of(slice)];
  const SliceLabel& label = tracks.label_of(slice);
  QString text = "<b>" + html_of(short_name(tracks, slice)) + "</b>";
  if (label.stage >= 0) text += QObject::tr(" of stage %1").arg(label.stage);
  if (row.rank >= 0) text += QObject::tr(" on rank %1").arg(row.rank);
  return text;
}

bool has_slice(const TimelineTracks& tracks, qint64 slice) {
  return slice >= 0 && static_cast<std::size_t>(slice) < tracks.slice_count();
}

QString chain_html(const TimelineTracks& tracks, const TimelineCauses& causes, std::size_t slice,
                   TimeUnit unit) {
  QString html;
  constexpr std::size_t kMostLinks = 10;
  for (const std::uint32_t link : chain_of_causes(causes, tracks, slice, kMostLinks))
    html += QString("<br>← %1, %2")
                .arg(place_text(tracks, link), duration(tracks.duration_of(link), unit));
  return html;
}

}  // namespace

QString slice_html(const TimelineTracks& tracks, const TimelineCauses* causes, qint64 at,
                   TimeUnit unit) {
  if (!has_slice(tracks, at)) return {};
  const auto slice = static_cast<std::size_t>(at);
  QString html = "<h3>" + place_text(tracks, slice) + "</h3>";
  Table table;
  table.row(QObject::tr("Kind"), html_of(name_of(tracks.kind[slice])));
  table.row(QObject::tr("Start"), duration(tracks.start_of(slice), unit));
  table.row(QObject::tr("Duration"), duration(tracks.duration_of(slice), unit));
  if (causes != nullptr) {
    table.row(QObject::tr("Slack"), duration(Nanoseconds(causes->slack_ns[slice]), unit));
    table.row(QObject::tr("Critical path"),
              causes->is_critical[slice] ? QObject::tr("yes") : QObject::tr("no"));
  }
  html += table.html();
  if (causes != nullptr)
    html += "<p>" + QObject::tr("Start time determined by") +
            chain_html(tracks, *causes, slice, unit) + "</p>";
  return html + "<p><code>" + html_of(full_name(tracks, slice)) + "</code></p>";
}

QString bubble_html(const TimelineTracks& tracks, const TimelineCauses& causes, qint64 after,
                    TimeUnit unit) {
  if (!has_slice(tracks, after)) return {};
  const auto slice = static_cast<std::size_t>(after);
  const std::size_t row = tracks.row_of(slice);
  const Nanoseconds to = tracks.start_of(slice);
  const Nanoseconds from =
      slice == tracks.row_begin[row] ? Nanoseconds() : tracks.end_of(slice - 1);
  QString html = "<h3>" + QObject::tr("Bubble: %1").arg(duration(to - from, unit)) + "</h3><p>" +
                 QObject::tr("before %1").arg(place_text(tracks, slice)) + "</p>";
  Table table;
  for (const IdleSpan& part : causes.idle_of_row[row])
    if (part.from >= from && part.to <= to)
      table.row(cause_text(part.cause), duration(part.to - part.from, unit));
  html += table.html();
  return html + "<p>" + QObject::tr("Waiting for") + chain_html(tracks, causes, slice, unit) +
         "</p>";
}

QString area_html(const TimelineTracks& tracks, const TimelineCauses* causes,
                  const TimelineArea& area, TimeUnit unit) {
  const AreaStatistics statistics = area_statistics(tracks, area, causes);
  QString html = "<h3>" +
                 QObject::tr("%1 on %n row(s)", nullptr, static_cast<int>(statistics.rows.size()))
                     .arg(duration(statistics.span, unit)) +
                 "</h3>";
  Table table;
  table.row(QObject::tr("Slices"), count_text(static_cast<qint64>(statistics.slices)));
  for (int k = 0; k < kSliceKindCount; ++k)
    if (const Nanoseconds busy = statistics.busy[static_cast<std::size_t>(k)]; busy.value > 0)
      table.row(html_of(name_of(static_cast<SliceKind>(k))), duration(busy, unit));
  html += table.html();
  if (statistics.compute_span.value > 0) {
    Table idle;
    const auto share = [&](Nanoseconds time) {
      return percent_text(ratio(time, statistics.compute_span));
    };
    idle.row("<b>" + QObject::tr("Idle") + "</b>", share(statistics.compute_idle));
    for (int c = 0; c < kIdleCauseCount; ++c)
      if (const Nanoseconds time = statistics.idle[static_cast<std::size_t>(c)]; time.value > 0)
        idle.row(cause_text(static_cast<IdleCause>(c)), share(time));
    html += "<p>" + QObject::tr("Share of compute-stream time") + "</p>" + idle.html();
  }
  return html;
}

QString overview_html(const Simulation& s, TimeUnit unit) {
  QString html = "<h3>" + QObject::tr("Step time breakdown") + "</h3>";
  const StepShares shares = step_shares(s.evaluation);
  Table table;
  const auto add = [&](const QString& name, double share) {
    if (share >= 5e-4) table.row(name, percent_text(share));
  };
  for (int k = 0; k < kKernelKindCount; ++k)
    add(part_name(static_cast<KernelKind>(k)), shares.compute[static_cast<std::size_t>(k)]);
  add(QObject::tr("recomputation"), shares.recompute);
  add(QObject::tr("optimizer"), shares.optimizer);
  add(QObject::tr("kernel launches"), shares.launch);
  for (int a = 0; a < kAxisCount; ++a)
    add(part_name(static_cast<Axis>(a)), shares.exposed_communication[static_cast<std::size_t>(a)]);
  for (int c = 0; c < kBubbleCauseCount; ++c)
    add(part_name(static_cast<BubbleCause>(c)), shares.bubble[static_cast<std::size_t>(c)]);
  html += table.html();
  html += "<h3>" + QObject::tr("Bubble") + "</h3>";
  Table bubble;
  bubble.row(QObject::tr("of the period, mean over ranks"),
             percent_text(s.evaluation.bubble_of_period));
  bubble.row(QObject::tr("of the period, busiest rank"),
             percent_text(s.evaluation.busiest_rank_bubble));
  bubble.row(QObject::tr("of the pipeline makespan, mean over ranks"),
             percent_text(s.evaluation.bubble_of_makespan));
  bubble.row(QObject::tr("of the step time, mean over ranks"),
             percent_text(std::accumulate(shares.bubble.begin(), shares.bubble.end(), 0.0)));
  html += bubble.html();
  html += "<h3>" + QObject::tr("Plan") + "</h3>";
  Table plan;
  plan.row(QObject::tr("Step time"), time_text(s.evaluation.step_time, unit));
  if (const std::optional<StepTimeRange>& range = s.figures.range)
    plan.row(QObject::tr("Expected measurement, p10 to p90"),
             QObject::tr("%1 to %2").arg(time_text(range->p10, unit), time_text(range->p90, unit)));
  plan.row(QObject::tr("Pipeline makespan"), time_text(s.evaluation.pipeline_makespan, unit));
  plan.row(QObject::tr("Period (steady-state step time)"), time_text(s.evaluation.period, unit));
  plan.row(QObject::tr("Model FLOP/s per GPU"), rate_text(s.evaluation.model_flops_per_gpu));
  plan.row(QObject::tr("Tasks"), count_text(static_cast<qint64>(s.step.graph.tasks.size())));
  html += plan.html();
  QStringList cut;
  for (const int blocks : s.plan.blocks_per_stage) cut += QString::number(blocks);
  html += "<p>" + QObject::tr("Layers per stage: %1").arg(cut.join(" ")) + "</p>";
  return html + "<p>" +
         QObject::tr("Cost model: %1; %2.")
             .arg(html_of(s.job->cost_model->provenance()),
                  html_of(s.job->cost_model->validation())) +
         "</p>";
}

}  // namespace meshwright::gui

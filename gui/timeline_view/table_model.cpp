#include "gui/timeline_view/table_model.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "gui/text/qstring_of.hpp"
#include "gui/timeline/ruler.hpp"
#include "gui/timeline_view/words.hpp"

namespace meshwright::gui {
namespace {

/// Quotes a field as in RFC 4180.
QString csv_field(QString text) {
  if (!text.contains(QLatin1Char(',')) && !text.contains(QLatin1Char('"')) &&
      !text.contains(QLatin1Char('\n')))
    return text;
  text.replace(QLatin1Char('"'), QLatin1String("\"\""));
  return QLatin1Char('"') + text + QLatin1Char('"');
}

}  // namespace

TimelineTableModel::TimelineTableModel(QObject* parent) : QAbstractTableModel(parent) {}

void TimelineTableModel::show(std::shared_ptr<const TimelineTracks> tracks,
                              std::shared_ptr<const TimelineCauses> causes,
                              const std::vector<std::size_t>& rows, Nanoseconds from,
                              Nanoseconds to) {
  beginResetModel();
  tracks_ = std::move(tracks);
  causes_ = std::move(causes);
  slices_.clear();
  cut_ = false;
  if (tracks_ != nullptr) {
    std::vector<std::size_t> all = rows;
    if (all.empty()) {
      all.resize(tracks_->rows.size());
      std::iota(all.begin(), all.end(), std::size_t{0});
    }
    for (const std::size_t row : all)
      for (std::size_t s = tracks_->first_ending_after(row, from);
           s < tracks_->row_begin[row + 1] && tracks_->start_of(s) < to; ++s) {
        cut_ = slices_.size() >= kMostRows;
        if (cut_) break;
        slices_.push_back(static_cast<std::uint32_t>(s));
      }
  }
  endResetModel();
}

int TimelineTableModel::row_of(std::size_t slice) const {
  const auto at = std::lower_bound(slices_.begin(), slices_.end(), slice);
  return at != slices_.end() && *at == slice ? static_cast<int>(at - slices_.begin()) : -1;
}

int TimelineTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(slices_.size());
}

int TimelineTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumnCount;
}

QVariant TimelineTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  if (role == Qt::TextAlignmentRole)
    return index.column() == kRank || index.column() == kStage || index.column() >= kMicrobatch
               ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
               : QVariant();
  if (role != Qt::DisplayRole) return {};
  const std::size_t slice = slice_of(index.row());
  const TimelineRow& row = tracks_->rows[tracks_->row_of(slice)];
  const auto time = [](Nanoseconds t) { return QString::fromStdString(format_time(t, 6)); };
  switch (index.column()) {
    case kRank:
      return row.rank >= 0 ? QVariant(row.rank) : QVariant();
    case kStream:
      return QString::fromStdString(row.label);
    case kStage:
      return tracks_->label_of(slice).stage >= 0 ? QVariant(tracks_->label_of(slice).stage)
                                                 : QVariant();
    case kName:
      return QString::fromStdString(short_name(*tracks_, slice));
    case kKind:
      return qstring_of(name_of(tracks_->kind[slice]));
    case kMicrobatch:
      return tracks_->microbatch[slice] == kNoMicrobatch ? QVariant()
                                                         : QVariant(tracks_->microbatch[slice]);
    case kStart:
      return time(tracks_->start_of(slice));
    case kDuration:
      return time(tracks_->duration_of(slice));
    case kSlack:
      return causes_ != nullptr && slice < causes_->slack_ns.size()
                 ? QVariant(time(Nanoseconds(causes_->slack_ns[slice])))
                 : QVariant();
    case kWaitsFor:
      return causes_ != nullptr && slice < causes_->binding.size() &&
                     causes_->binding[slice] != kNoSlice
                 ? QVariant(describe_cause(*tracks_, causes_->binding[slice]))
                 : QVariant();
    default:
      return {};
  }
}

QVariant TimelineTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
    return QAbstractTableModel::headerData(section, orientation, role);
  constexpr std::array<const char*, kColumnCount> kTitles{
      QT_TR_NOOP("Rank"),  QT_TR_NOOP("Stream"),      QT_TR_NOOP("Stage"), QT_TR_NOOP("Name"),
      QT_TR_NOOP("Kind"),  QT_TR_NOOP("Micro-batch"), QT_TR_NOOP("Start"), QT_TR_NOOP("Duration"),
      QT_TR_NOOP("Slack"), QT_TR_NOOP("Waits for")};
  static_assert(kTitles.back() != nullptr);
  if (section < 0 || section >= kColumnCount) return {};
  return tr(kTitles[static_cast<std::size_t>(section)]);
}

QString TimelineTableModel::to_csv() const {
  QString text = QStringLiteral("rank,stream,stage,name,kind,microbatch,start_ns,duration_ns\n");
  for (const std::uint32_t slice : slices_) {
    const TimelineRow& row = tracks_->rows[tracks_->row_of(slice)];
    const SliceLabel& label = tracks_->label_of(slice);
    const auto number = [](std::int64_t value, bool known) {
      return known ? QString::number(value) : QString();
    };
    text +=
        QStringList{number(row.rank, row.rank >= 0),
                    csv_field(QString::fromStdString(row.label)),
                    number(label.stage, label.stage >= 0),
                    csv_field(QString::fromStdString(short_name(*tracks_, slice))),
                    qstring_of(name_of(tracks_->kind[slice])),
                    number(tracks_->microbatch[slice], tracks_->microbatch[slice] != kNoMicrobatch),
                    QString::number(tracks_->start_ns[slice]),
                    QString::number(tracks_->duration_of(slice).value)}
            .join(QLatin1Char(',')) +
        QLatin1Char('\n');
  }
  return text;
}

}  // namespace meshwright::gui

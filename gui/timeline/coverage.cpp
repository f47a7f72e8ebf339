#include "gui/timeline/coverage.hpp"

#include <algorithm>
#include <bit>

#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {
namespace {

/// Average number of slices per bin of level 0. The mipmap then costs 2 x 2 bytes x kinds / 16 per
/// slice, and when a pixel is narrower than a bin it covers at most about 16 slices.
constexpr std::int64_t kSlicesPerBin = 16;
constexpr std::int64_t kFull = 65535;

using ChannelOfKind = std::array<std::size_t, kSliceKindCount>;

/// Sets the channels (kinds in the row, ascending); returns the channel of each kind.
ChannelOfKind find_channels(const TimelineTracks& tracks, std::size_t row, RowCoverage& coverage) {
  std::array<bool, kSliceKindCount> has{};
  for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s)
    has[static_cast<std::size_t>(tracks.kind[s])] = true;
  ChannelOfKind channel{};
  for (std::size_t k = 0; k < kSliceKindCount; ++k) {
    if (!has[k]) continue;
    channel[k] = coverage.channels.size();
    coverage.channels.push_back(static_cast<SliceKind>(k));
  }
  return channel;
}

void add_sums(const TimelineTracks& tracks, std::size_t row, const ChannelOfKind& channel,
              RowCoverage& coverage) {
  const std::size_t begin = tracks.row_begin[row], count = tracks.row_begin[row + 1] - begin;
  const std::size_t channels = coverage.channels.size();
  coverage.sums_ns.reserve((count / kSlicesPerSum + 1) * channels);
  std::vector<std::int64_t> sum(channels);
  for (std::size_t i = 0; i <= count; ++i) {
    if (i % kSlicesPerSum == 0)
      coverage.sums_ns.insert(coverage.sums_ns.end(), sum.begin(), sum.end());
    if (i == count) break;
    sum[channel[static_cast<std::size_t>(tracks.kind[begin + i])]] +=
        tracks.duration_of(begin + i).value;
  }
}

/// Busy nanoseconds per bin of level 0: [bin, channel].
std::vector<std::int64_t> busy_of_bins(const TimelineTracks& tracks, std::size_t row,
                                       const ChannelOfKind& channel, const RowCoverage& coverage,
                                       std::size_t bins) {
  const int shift = std::countr_zero(static_cast<std::uint64_t>(coverage.base_bin.value));
  const std::size_t channels = coverage.channels.size();
  std::vector<std::int64_t> busy(bins * channels);
  for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
    const std::size_t c = channel[static_cast<std::size_t>(tracks.kind[s])];
    std::int64_t from = tracks.start_ns[s];
    const std::int64_t to = from + tracks.duration_of(s).value;
    while (from < to) {
      const std::int64_t bin = from >> shift;
      const std::int64_t until = std::min(to, (bin + 1) << shift);
      busy[static_cast<std::size_t>(bin) * channels + c] += until - from;
      from = until;
    }
  }
  return busy;
}

/// Busy fractions of one level; the rounding error is carried to the next bin.
CoverageLevel rounded(const std::vector<std::int64_t>& busy, std::size_t channels,
                      Nanoseconds bin) {
  CoverageLevel level;
  level.bins = busy.size() / channels;
  level.shares.resize(busy.size());
  const double scale = static_cast<double>(kFull) / static_cast<double>(bin.value);
  for (std::size_t c = 0; c < channels; ++c) {
    double carried = 0;
    for (std::size_t i = c; i < busy.size(); i += channels) {
      const double wanted = static_cast<double>(busy[i]) * scale + carried;
      // NOLINTNEXTLINE(bugprone-incorrect-roundings): above -0.5; llround() is a call per bin
      const auto nearest = static_cast<std::int64_t>(wanted + 0.5);
      const auto share = std::clamp<std::int64_t>(nearest, 0, kFull);
      level.shares[i] = static_cast<std::uint16_t>(share);
      carried = wanted - static_cast<double>(share);
    }
  }
  return level;
}

/// Merges pairs of bins: half as many bins, twice as wide.
void halve(std::vector<std::int64_t>& busy, std::size_t channels) {
  const std::size_t bins = busy.size() / channels, half = (bins + 1) / 2;
  for (std::size_t b = 0; b < half; ++b)
    for (std::size_t c = 0; c < channels; ++c)
      busy[b * channels + c] =
          busy[2 * b * channels + c] + (2 * b + 1 < bins ? busy[(2 * b + 1) * channels + c] : 0);
  busy.resize(half * channels);
}

}  // namespace

Nanoseconds total(const BusyTimes& times) {
  Nanoseconds sum;
  for (const Nanoseconds time : times) sum += time;
  return sum;
}

RowCoverage row_coverage(const TimelineTracks& tracks, std::size_t row) {
  RowCoverage coverage;
  const auto count = static_cast<std::int64_t>(tracks.row_begin[row + 1] - tracks.row_begin[row]);
  coverage.base_bin = Nanoseconds(1);
  if (count == 0) return coverage;
  const ChannelOfKind channel = find_channels(tracks, row, coverage);
  add_sums(tracks, row, channel, coverage);

  const std::int64_t average = tracks.end.value / std::max<std::int64_t>(1, count / kSlicesPerBin);
  coverage.base_bin = Nanoseconds(static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, average)))));
  const auto bins = static_cast<std::size_t>(tracks.end.value / coverage.base_bin.value + 1);
  std::vector<std::int64_t> busy = busy_of_bins(tracks, row, channel, coverage, bins);
  Nanoseconds bin = coverage.base_bin;
  while (true) {
    coverage.levels.push_back(rounded(busy, coverage.channels.size(), bin));
    if (coverage.levels.back().bins <= 1) break;
    halve(busy, coverage.channels.size());
    bin = bin * 2;
  }
  return coverage;
}

TimelineCoverage build_coverage(const TimelineTracks& tracks) {
  TimelineCoverage coverage;
  coverage.rows.reserve(tracks.rows.size());
  for (std::size_t row = 0; row < tracks.rows.size(); ++row)
    coverage.rows.push_back(row_coverage(tracks, row));
  return coverage;
}

namespace {

/// Adds `sign` times the time by kind of the row's slices before `slice`.
void add_sums_before(const TimelineTracks& tracks, std::size_t row, std::size_t slice,
                     std::int64_t sign, BusyTimes& times) {
  const RowCoverage& coverage = tracks.coverage.rows[row];
  const std::size_t begin = tracks.row_begin[row], block = (slice - begin) / kSlicesPerSum;
  const std::size_t channels = coverage.channels.size();
  for (std::size_t c = 0; c < channels; ++c)
    times[static_cast<std::size_t>(coverage.channels[c])] +=
        Nanoseconds(sign * coverage.sums_ns[block * channels + c]);
  for (std::size_t s = begin + block * kSlicesPerSum; s < slice; ++s)
    times[static_cast<std::size_t>(tracks.kind[s])] += tracks.duration_of(s) * sign;
}

}  // namespace

BusyTimes busy_times(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                     Nanoseconds to) {
  BusyTimes times{};
  if (tracks.row_begin[row] == tracks.row_begin[row + 1] || to <= from) return times;
  // Whole slices [first, last), minus the parts outside [from, to).
  const std::size_t first = tracks.first_ending_after(row, from);
  const std::size_t last = tracks.first_starting_from(row, to);
  if (first >= last) return times;
  add_sums_before(tracks, row, last, 1, times);
  add_sums_before(tracks, row, first, -1, times);
  const auto cut = [&](std::size_t slice, Nanoseconds amount) {
    if (amount > Nanoseconds(0)) times[static_cast<std::size_t>(tracks.kind[slice])] -= amount;
  };
  cut(first, from - tracks.start_of(first));
  cut(last - 1, tracks.end_of(last - 1) - to);
  return times;
}

}  // namespace meshwright::gui

#include "executor/parameters/parameter_run.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

Vector within(const Vector& of, const Block& block) {
  return part_of(of, block.begin, block.size());
}
/// A block of the run within a buffer that starts at element `first` of it.
Vector within(const Vector& of, const Block& block, std::int64_t first) {
  return part_of(of, block.begin - first, block.size());
}

std::vector<float> owned_part(RankContext& rank, const RunLayout& layout,
                              std::span<const float> all) {
  std::vector<float> owned;
  owned.reserve(static_cast<std::size_t>(layout.own_elements()));
  for (const ParameterPiece& piece : layout.pieces)
    for_each_piece(piece.own.size(), PieceLimits().elements,
                   [&](std::int64_t first, std::int64_t count) {
                     const auto begin = all.begin() + piece.own.begin + first;
                     owned.insert(owned.end(), begin, begin + count);
                     rank.progress.beats.fetch_add(1, std::memory_order_relaxed);
                   });
  return owned;
}

}  // namespace

ParameterRun::ParameterRun(RankContext& rank, RunLayout layout, std::span<const float> initial)
    : rank_(&rank),
      layout_(std::move(layout)),
      elements_(static_cast<std::int64_t>(initial.size())) {
  if (layout_.pieces.empty() && elements_ > 0)
    layout_.pieces = {{.all = {0, elements_}, .own = {0, elements_}}};
  const std::int64_t own = layout_.own_elements();
  const bool starts_from_own = layout_.shards_weights;
  for (int version = 0; version < layout_.weight_versions; ++version)
    weights_.push_back(
        rank.matrix(MemoryClass::kWeights, 1, starts_from_own ? own : elements_, rank.dtype));
  gradients_ = rank.matrix(MemoryClass::kGradients, 1, layout_.shards_gradients ? own : elements_,
                           Dtype::kFp32);
  clear_gradients();
  const bool has_masters =
      layout_.has_state && (rank.dtype != Dtype::kFp32 || layout_.state_on_host);
  const std::vector<float> owned =
      starts_from_own || has_masters ? owned_part(rank, layout_, initial) : std::vector<float>();
  const std::span<const float> start = starts_from_own ? std::span<const float>(owned) : initial;
  // All versions, so that first-touch page faults do not fall into the first step.
  for (OwnedMatrix& version : weights_)
    rank.run(rank.kernels.cast,
             {.x = {start.data(), static_cast<std::int64_t>(start.size()), Dtype::kFp32},
              .y = flat(version.view())});
  rank.wait();  // the staging memory is as large as the parameters
  if (!layout_.has_state) return;
  const auto state = [&] {
    OwnedMatrix made =
        layout_.state_on_host
            ? OwnedMatrix(rank.host_memory, MemoryClass::kOptimizer, 1, own, Dtype::kFp32)
            : rank.matrix(MemoryClass::kOptimizer, 1, own, Dtype::kFp32);
    clear(made);
    return made;
  };
  first_moment_ = state();
  if (moment_count(rank.strategy.optimizer) > 1) second_moment_ = state();
  if (!has_masters) return;
  if (layout_.state_on_host) host_gradients_ = state();
  master_ = state();
  rank.run(rank.kernels.cast, {.x = {owned.data(), own, Dtype::kFp32}, .y = flat(master_.view())});
  rank.wait();
}

void ParameterRun::clear(OwnedMatrix& m) {
  rank_->run(rank_->kernels.fill, {.y = flat(m.view()), .value = 0});
}

std::size_t ParameterRun::piece_at(std::int64_t element) const {
  const auto behind = std::upper_bound(
      layout_.pieces.begin(), layout_.pieces.end(), element,
      [](std::int64_t e, const ParameterPiece& piece) { return e < piece.all.begin; });
  MW_CHECK(behind != layout_.pieces.begin());
  return static_cast<std::size_t>(behind - layout_.pieces.begin()) - 1;
}

Vector ParameterRun::weights(const Block& block) {
  if (!layout_.shards_weights) return within(flat(weights_[version_used_].view()), block);
  if (block.size() == 0) return {nullptr, 0, rank_->dtype};
  const std::size_t piece = piece_at(block.begin);
  const auto open = whole_weights_.lower_bound({piece, 0});
  if (open == whole_weights_.end() || open->first.first != piece)
    return {nullptr, block.size(), rank_->dtype};
  return within(flat(open->second.view()), block, layout_.pieces[piece].all.begin);
}

void ParameterRun::use_version(int version) {
  version_used_ = static_cast<std::size_t>(version) % weights_.size();
}

/// With master weights the update writes all 16-bit weights, so there is nothing to copy.
void ParameterRun::begin_version(int version) {
  const std::size_t next = static_cast<std::size_t>(version) % weights_.size();
  if (next != version_newest_ && !has_master() && !weights_[next].empty())
    rank_->run(rank_->kernels.cast,
               {.x = flat(weights_[version_newest_].view()), .y = flat(weights_[next].view())});
  version_newest_ = next;
}

Vector ParameterRun::gradients(const Block& block) {
  if (!layout_.shards_gradients) {
    gradients_are_zero_ = false;
    clear_stale_gradients(block);
    return within(flat(gradients_.view()), block);
  }
  if (block.size() == 0) return {nullptr, 0, Dtype::kFp32};
  std::int64_t place = 0;
  for (const Block& apart : separate_) {
    if (apart.begin <= block.begin && block.end <= apart.end)
      return part_of(flat(separate_gradients_.view()), place + block.begin - apart.begin,
                     block.size());
    place += apart.size();
  }
  const std::size_t piece = piece_at(block.begin);
  return within(open_gradients(piece), block, layout_.pieces[piece].all.begin);
}

ParameterRun::Destination ParameterRun::gradients_to_write(const Block& block) {
  for (Overwritten& one : overwritten_) {
    if (!one.is_stale || !(one.block == block)) continue;
    one.is_stale = false;
    return {gradients(block), false};
  }
  return {gradients(block), true};
}

void ParameterRun::overwrite_first(std::span<const Block> blocks) {
  MW_CHECK(!layout_.shards_gradients);
  for (const Block& block : blocks) overwritten_.push_back({block});
}

void ParameterRun::clear_stale_gradients(const Block& range) {
  for (Overwritten& one : overwritten_) {
    if (!one.is_stale || one.block.end <= range.begin || range.end <= one.block.begin) continue;
    one.is_stale = false;
    rank_->run(rank_->kernels.fill, {.y = within(flat(gradients_.view()), one.block), .value = 0});
  }
}

void ParameterRun::store_separately(std::vector<Block> blocks) {
  separate_ = std::move(blocks);
  std::int64_t count = 0;
  for (const Block& block : separate_) count += block.size();
  separate_gradients_ = rank_->matrix(MemoryClass::kGradients, 1, count, Dtype::kFp32);
  clear(separate_gradients_);
}

Vector ParameterRun::open_gradients(std::size_t piece) {
  OwnedMatrix& buffer = whole_gradients_[piece];
  if (buffer.empty()) {
    buffer =
        rank_->matrix(MemoryClass::kGradients, 1, layout_.pieces[piece].all.size(), Dtype::kFp32);
    clear(buffer);
  }
  return flat(buffer.view());
}

Vector ParameterRun::gradients_to_reduce(std::size_t piece) {
  const Vector whole = open_gradients(piece);
  const Block& all = layout_.pieces[piece].all;
  std::int64_t place = 0;
  for (const Block& apart : separate_) {
    const Vector kept = part_of(flat(separate_gradients_.view()), place, apart.size());
    place += apart.size();
    if (apart.begin < all.begin || apart.end > all.end) continue;
    rank_->run(rank_->kernels.reduce, {.into = within(whole, apart, all.begin), .from = kept});
    rank_->run(rank_->kernels.fill, {.y = kept, .value = 0});
  }
  return whole;
}

std::span<float> ParameterRun::own(OwnedMatrix& of, std::size_t piece) {
  const ParameterPiece& which = layout_.pieces[piece];
  return of.floats().subspan(static_cast<std::size_t>(which.place),
                             static_cast<std::size_t>(which.own.size()));
}

Vector ParameterRun::own_weights(std::size_t piece) {
  const ParameterPiece& which = layout_.pieces[piece];
  const Vector all = flat(weights_[version_newest_].view());
  return layout_.shards_weights ? part_of(all, which.place, which.own.size())
                                : within(all, which.own);
}

std::span<float> ParameterRun::own_gradients(std::size_t piece) {
  gradients_are_zero_ = false;
  if (layout_.shards_gradients) return own(gradients_, piece);
  const Block& mine = layout_.pieces[piece].own;
  clear_stale_gradients(mine);
  return floats_of(within(flat(gradients_.view()), mine));
}
std::span<float> ParameterRun::gradients_for_update(std::size_t piece) {
  return layout_.state_on_host ? own(host_gradients_, piece) : own_gradients(piece);
}
std::span<float> ParameterRun::master(std::size_t piece) { return own(master_, piece); }
std::span<float> ParameterRun::first_moment(std::size_t piece) { return own(first_moment_, piece); }
std::span<float> ParameterRun::second_moment(std::size_t piece) {
  return second_moment_.empty() ? std::span<float>() : own(second_moment_, piece);
}

void ParameterRun::clear_gradients() {
  if (gradients_.empty() || gradients_are_zero_) return;
  gradients_are_zero_ = true;
  std::int64_t first = 0;
  const auto clear_up_to = [&](std::int64_t end) {
    if (first < end)
      rank_->run(rank_->kernels.fill,
                 {.y = within(flat(gradients_.view()), {first, end}), .value = 0});
  };
  for (Overwritten& one : overwritten_) {
    one.is_stale = true;
    clear_up_to(one.block.begin);
    first = one.block.end;
  }
  clear_up_to(flat(gradients_.view()).size);
}

Vector ParameterRun::open_weights(std::size_t piece, int use) {
  const ParameterPiece& which = layout_.pieces[piece];
  OwnedMatrix& buffer = whole_weights_[{piece, use}];
  MW_CHECK(buffer.empty());
  buffer = rank_->matrix(MemoryClass::kCommunication, 1, which.all.size(), rank_->dtype);
  const Vector whole = flat(buffer.view());
  rank_->run(rank_->kernels.cast,
             {.x = own_weights(piece), .y = within(whole, which.own, which.all.begin)});
  return whole;
}

void ParameterRun::close_weights(std::size_t piece, int use) {
  MW_CHECK(whole_weights_.erase({piece, use}) == 1);
}

void ParameterRun::keep_own_gradients(std::size_t piece) {
  const ParameterPiece& which = layout_.pieces[piece];
  const auto open = whole_gradients_.find(piece);
  MW_CHECK(layout_.shards_gradients && open != whole_gradients_.end());
  const std::span<float> kept = own_gradients(piece);
  rank_->run(rank_->kernels.reduce,
             {.into = {kept.data(), std::ssize(kept), Dtype::kFp32},
              .from = within(flat(open->second.view()), which.own, which.all.begin)});
  reduced_.push_back(std::move(open->second));
  whole_gradients_.erase(open);
}

}  // namespace meshwright

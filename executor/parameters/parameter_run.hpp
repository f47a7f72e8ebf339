/// A flat buffer of parameters on one rank, the dense or the expert parameters of a model chunk,
/// with gradients and optimizer state: replicated, or sharded over the data-parallel ranks
/// according to its layout.
///
/// Sharded data are stored as this rank's shards, contiguously, and in full only while in use:
/// weights between open_weights() and close_weights(), gradients from their first kernel until they
/// are reduced.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "executor/parameters/run_layout.hpp"
#include "executor/ranks/counted_memory.hpp"
#include "executor/ranks/rank_context.hpp"

namespace meshwright {

/// The elements of the run in the range.
inline Block block_of(const ParameterRange& range) {
  return {range.first, range.first + range.count};
}

class ParameterRun {
 public:
  ParameterRun() = default;
  /// `initial` holds all elements, unsharded.
  ParameterRun(RankContext& rank, RunLayout layout, std::span<const float> initial);

  RankContext& rank() { return *rank_; }
  std::int64_t elements() const { return elements_; }
  const RunLayout& layout() const { return layout_; }
  std::size_t piece_at(std::int64_t element) const;

  /// Elements within one piece. The data pointer is null if the weights are sharded and not
  /// gathered; then only the shape is valid.
  Vector weights(const Block& block);
  /// fp32, to be added to.
  Vector gradients(const Block& block);
  /// Gradients, and whether something must be added to them; else all of them must be written.
  struct Destination {
    Vector values;
    bool adds = true;
  };
  Destination gradients_to_write(const Block& block);
  /// Leaves these blocks, ascending, out of clear_gradients(): what comes first in a step
  /// overwrites them, which saves memory traffic.
  void overwrite_first(std::span<const Block> blocks);
  /// Stores the gradients of these elements unsharded and outside the buffers of their pieces until
  /// the piece is reduced: the backward-input passes compute them before the buffers exist.
  void store_separately(std::vector<Block> blocks);
  /// The piece's buffer; a new one is zeroed.
  Vector open_gradients(std::size_t piece);
  /// The same, including the gradients set apart by store_separately().
  Vector gradients_to_reduce(std::size_t piece);

  // Weight versions (weight stashing). Version v is stored in slot v modulo the number of versions;
  // version 0 exists from the start.
  /// Selects the version that weights() returns.
  void use_version(int version);
  /// Creates a version for the next update as a copy of the newest one.
  void begin_version(int version);

  // Owned elements of a piece; weights of the newest version.
  Vector own_weights(std::size_t piece);
  std::span<float> own_gradients(std::size_t piece);
  /// The gradients that the update reads: a copy on the host if the optimizer state is offloaded.
  std::span<float> gradients_for_update(std::size_t piece);
  std::span<float> master(std::size_t piece);  ///< if has_master()
  std::span<float> first_moment(std::size_t piece);
  std::span<float> second_moment(std::size_t piece);  ///< empty with SGD
  /// Whether there are separate fp32 master weights: for 16-bit weights, and with offloading.
  bool has_master() const { return !master_.empty(); }

  /// Zeroes the stored gradients; no-op if none was accessed since.
  void clear_gradients();

  /// A buffer for all weights of a piece, with the owned ones filled in. Concurrent uses have
  /// separate buffers.
  Vector open_weights(std::size_t piece, int use);
  void close_weights(std::size_t piece, int use);
  /// Adds the owned gradients in the piece's buffer to the stored ones and releases the buffer; its
  /// memory is freed by free_reduced_gradients().
  void keep_own_gradients(std::size_t piece);
  void free_reduced_gradients() { reduced_.clear(); }

 private:
  std::span<float> own(OwnedMatrix& of, std::size_t piece);
  void clear(OwnedMatrix& m);
  void clear_stale_gradients(const Block& within);
  RankContext* rank_ = nullptr;
  RunLayout layout_;
  std::int64_t elements_ = 0;
  std::vector<OwnedMatrix> weights_;  ///< by version: [1, n], compute dtype, all or owned
  std::size_t version_used_ = 0, version_newest_ = 0;  ///< indices into weights_
  OwnedMatrix gradients_;                              ///< [1, n], fp32: all or owned
  bool gradients_are_zero_ = false;
  struct Overwritten {
    Block block;
    bool is_stale = false;  ///< counts as zero, but has not been written in this step
  };
  std::vector<Overwritten> overwritten_;
  OwnedMatrix host_gradients_;
  OwnedMatrix master_, first_moment_, second_moment_;                 ///< owned elements
  std::map<std::pair<std::size_t, int>, OwnedMatrix> whole_weights_;  ///< by piece and use
  std::map<std::size_t, OwnedMatrix> whole_gradients_;                ///< by piece
  std::vector<Block> separate_;                                       ///< set apart, ascending
  OwnedMatrix separate_gradients_;  ///< [1, n], fp32: of separate_, concatenated
  std::vector<OwnedMatrix> reduced_;
};

}  // namespace meshwright

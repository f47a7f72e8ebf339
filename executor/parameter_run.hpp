/// One flat run of parameters on one rank, the dense ones of a part or those of its experts, with
/// gradients and optimizer state: whole, or cut over the data ranks as its layout says.
///
/// What is cut is held in own parts side by side, and for the while of its use whole in buffers:
/// weights between open_weights() and close_weights(), gradients from their first kernel until they
/// are reduced.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "executor/counted_memory.hpp"
#include "executor/rank_context.hpp"
#include "executor/run_layout.hpp"

namespace meshwright {

class ParameterRun {
 public:
  ParameterRun() = default;
  /// `initial` has all elements.
  ParameterRun(RankContext& rank, RunLayout layout, std::span<const float> initial);

  RankContext& rank() { return *rank_; }
  std::int64_t elements() const { return elements_; }
  const RunLayout& layout() const { return layout_; }
  std::size_t piece_at(std::int64_t element) const;

  /// Of elements within one piece. Without memory where weights are cut and not gathered: good for
  /// their shape alone.
  Vector weights(const Block& block);
  /// fp32.
  Vector gradients(const Block& block);
  /// Of gradients that are cut: those of these elements are kept whole, beside the buffers of their
  /// pieces, until their piece is reduced: passes for inputs make them, before the buffers are
  /// there.
  void keep_apart(std::vector<Block> blocks);
  /// The piece's buffer, zero if it was not there yet.
  Vector open_gradients(std::size_t piece);
  /// The same with what was kept apart.
  Vector gradients_to_reduce(std::size_t piece);

  // Versions of the weights, where several are held. Version v lies where v modulo their number
  // says; 0 is there from the start.
  /// weights() are of this version from now on.
  void use_version(int version);
  /// A version of its own for the update that follows, made of the newest one so far.
  void begin_version(int version);

  // Own elements of a piece; weights are those of the newest version.
  Vector own_weights(std::size_t piece);
  std::span<float> own_gradients(std::size_t piece);
  /// What the update reads: a copy on the host where the state is there.
  std::span<float> gradients_for_update(std::size_t piece);
  std::span<float> master(std::size_t piece);  ///< where has_master()
  std::span<float> first_moment(std::size_t piece);
  std::span<float> second_moment(std::size_t piece);
  /// fp32 weights apart from those that are used: of 16-bit weights, and on the host.
  bool has_master() const { return !master_.empty(); }

  /// Those that are kept become zero; nothing to do where nobody has asked for one since.
  void clear_gradients();

  /// A buffer for all weights of a piece, with the own ones in their place. Several uses may hold a
  /// buffer each.
  Vector open_weights(std::size_t piece, int use);
  void close_weights(std::size_t piece, int use);
  /// Adds the piece's own gradients in its buffer to those that are kept, and lets it go; its
  /// memory stays until let_go().
  void keep_own_gradients(std::size_t piece);
  void let_go() { reduced_.clear(); }

 private:
  std::span<float> own(OwnedMatrix& of, std::size_t piece);
  void clear(OwnedMatrix& m);
  RankContext* rank_ = nullptr;
  RunLayout layout_;
  std::int64_t elements_ = 0;
  std::vector<OwnedMatrix> weights_;  ///< by version: [1, n] in the compute dtype, all or own
  std::size_t version_used_ = 0, version_newest_ = 0;  ///< in weights_
  OwnedMatrix gradients_;                              ///< [1, n], fp32: all, or own ones
  bool gradients_are_zero_ = false;
  OwnedMatrix host_gradients_;
  OwnedMatrix master_, first_moment_, second_moment_;                 ///< own ones
  std::map<std::pair<std::size_t, int>, OwnedMatrix> whole_weights_;  ///< by piece and use
  std::map<std::size_t, OwnedMatrix> whole_gradients_;                ///< by piece
  std::vector<Block> apart_;                                          ///< rising
  OwnedMatrix gradients_apart_;  ///< [1, n], fp32: of apart_, one behind the other
  std::vector<OwnedMatrix> reduced_;
};

}  // namespace meshwright

/// Tensors of one micro-batch on one stage, from its forward pass to the end of its backward pass.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/ids.hpp"
#include "core/operators/buffers.hpp"
#include "executor/ranks/counted_memory.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

/// Routing of the token rows of a mixture-of-experts layer. A slot is one (token, choice). With a
/// capacity, slot_of_row is -1 for padding rows and row_of_slot is -1 for dropped slots.
struct Routing {
  std::vector<std::int32_t> experts;  ///< [N, K]
  std::vector<float> weights;         ///< [N, K]
  std::vector<float> weight_gradients;
  std::vector<std::int32_t> slot_of_row, row_of_slot;  ///< for the tokens that this rank dispatches
  std::vector<std::int32_t> counts;                    ///< [E], of those tokens
  /// After dispatch: the rows of local expert e are [offsets[e], offsets[e + 1]).
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> received_from;     ///< number of rows, by expert rank
  std::vector<std::int32_t> place_of_arrival;  ///< received row → row sorted by local expert
  /// Expert-tensor ranks process the rows of their whole group: the number of rows of each member,
  /// and the position of each of these rows, member by member, when sorted by local expert.
  std::vector<std::int64_t> rows_of_member;
  std::vector<std::int32_t> place_in_group;
};

struct MicrobatchState {
  std::map<std::pair<std::int32_t, Form>, OwnedMatrix> tensors;  ///< by tensor and form
  /// Of joint outputs, by the first of them and form: while one of them exists.
  std::map<std::pair<std::int32_t, Form>, std::weak_ptr<SharedMemory>> joint;
  std::map<std::int32_t, OwnedMatrix> statistics;  ///< by operator: log-sum-exp of attention
  std::map<std::int32_t, Routing> routing;         ///< by tensor of router scores
  OwnedMatrix loss_maximum, loss_sum, target_logit, loss;  ///< [1, N]
  bool maximum_is_reduced = false;                         ///< first half of the loss is done
  bool loss_of_own_rows = false;  ///< each tensor rank has the loss of its own tokens only

  OwnedMatrix dispatched_gradient;               ///< of this rank's tokens, until gathered
  std::map<std::int32_t, Buffer> dropout_masks;  ///< by operator: one byte per element
  OwnedMatrix attention_delta;                   ///< fp32, until the backward kernels used it
  std::set<std::int32_t> made_with_product;      ///< GELUs fused into the preceding product
  MessageTag ring_tag;                           ///< of the keys and values in the ring
  bool output_is_sent = false;                   ///< freed by the send of the stage's output

  OwnedMatrix* find(TensorId id, Form form) {
    const auto found = tensors.find({id.value, form});
    return found == tensors.end() ? nullptr : &found->second;
  }
  void erase(TensorId id, Form form) { tensors.erase({id.value, form}); }
  void erase(const BufferKey& buffer) {
    if (buffer.form == Form::kSoftmaxSums)
      statistics.erase(buffer.id);
    else if (buffer.form == Form::kDropoutMask)
      dropout_masks.erase(buffer.id);
    else
      tensors.erase({buffer.id, buffer.form});
  }
};

/// The tokens in the rows of this rank's micro-batch, [B T / context]; row b T/context + t.
struct TokenRows {
  std::int64_t first_sequence = 0;           ///< of the micro-batch, within the step
  std::vector<std::int64_t> numbers;         ///< token numbers: sequence * T + position
  std::vector<std::int32_t> words, targets;  ///< token IDs; targets: the next ones
  std::vector<std::int32_t> positions;       ///< in the whole sequence
  std::vector<std::int32_t> token_types;     ///< all zero
};

}  // namespace meshwright

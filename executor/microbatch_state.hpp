/// Tensors of one micro-batch in one stage, from its forward pass to the end of its backward pass.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/activation_buffers.hpp"
#include "core/ids.hpp"
#include "executor/communicator.hpp"
#include "executor/counted_memory.hpp"

namespace meshwright {

/// Where the rows of a mixture of experts went. A slot is one (token, choice). Under a capacity
/// slot_of_row has -1 for rows that only fill up, row_of_slot for slots that were dropped.
struct Routing {
  std::vector<std::int32_t> experts;  ///< [N, K]
  std::vector<float> weights;         ///< [N, K]
  std::vector<float> weight_gradients;
  std::vector<std::int32_t> slot_of_row, row_of_slot;  ///< of the tokens that this rank dispatches
  std::vector<std::int32_t> counts;                    ///< [E] of those
  /// On the side of the experts: rows of local expert e are [offsets[e], offsets[e + 1]).
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> received_from;     ///< rows, by expert rank
  std::vector<std::int32_t> place_of_arrival;  ///< received row → row sorted by local expert
  /// Expert-tensor ranks work on the rows of their whole group: how many each of them has, and
  /// where those, one rank behind the other, stand when sorted by local expert.
  std::vector<std::int64_t> rows_of_member;
  std::vector<std::int32_t> place_in_group;
};

struct MicrobatchState {
  std::map<std::pair<std::int32_t, Form>, OwnedMatrix> tensors;  ///< by tensor and form
  std::map<std::int32_t, OwnedMatrix> statistics;  ///< by operator: log-sum-exp of attention
  std::map<std::int32_t, Routing> routing;         ///< by the tensor of scores
  OwnedMatrix loss_maximum, loss_sum, target_logit, loss;  ///< [1, N]
  bool maximum_is_reduced = false;                         ///< half of the loss is done
  bool loss_of_own_rows = false;  ///< each tensor rank has the loss of its own tokens

  OwnedMatrix dispatched_gradient;  ///< of a rank's own tokens, until all ranks have all
  std::map<std::int32_t, Buffer> dropout_masks;  ///< by operator: a byte for each element
  OwnedMatrix attention_delta;                   ///< fp32, until the backward kernels have used it
  std::set<std::int32_t> made_with_product;  ///< GELUs that the product beside them has computed
  MessageTag ring_tag;                       ///< of keys and values that go round

  OwnedMatrix* find(TensorId id, Form form) {
    const auto found = tensors.find({id.value, form});
    return found == tensors.end() ? nullptr : &found->second;
  }
  void erase(TensorId id, Form form) { tensors.erase({id.value, form}); }
  void erase(const ActivationBuffer& buffer) {
    if (buffer.form == Form::kSoftmaxSums)
      statistics.erase(buffer.id);
    else if (buffer.form == Form::kDropoutMask)
      dropout_masks.erase(buffer.id);
    else
      tensors.erase({buffer.id, buffer.form});
  }
};

/// What the rows of this rank's micro-batch are: [B T / context], row b T/context + t.
struct TokenRows {
  std::int64_t first_sequence = 0;           ///< of the micro-batch, within the training step
  std::vector<std::int64_t> numbers;         ///< of the tokens: sequence * T + position
  std::vector<std::int32_t> words, targets;  ///< targets: the next words
  std::vector<std::int32_t> positions;       ///< in the whole sequence
  std::vector<std::int32_t> token_types;     ///< all zero
};

}  // namespace meshwright

// Dispatch of tokens to their experts and combination of the results: all-to-alls over the expert
// ranks, forward and backward. Each tensor rank sends 1/tensor of the tokens; expert-tensor ranks
// all-gather the rows before the experts and reduce-scatter them after. With dropless, imbalanced
// routing, the busiest expert rank sets the pace. Without sequence parallelism, expert outputs
// (backward: gradients of dispatched tokens) are all-gathered over the tensor ranks.
//
// A rank holds routed rows in three places: the rows of its own tokens ("home"), the rows received
// for its experts, and, with expert-tensor parallelism, the rows of the whole expert-tensor group.
// Their number follows ExpertRouting; it is exact with a capacity factor or a single expert rank.
#include <algorithm>
#include <cmath>

#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kScaledElements = 128;  ///< share one fp32 scale (arXiv 2412.19437, 3.3.2)
constexpr std::int64_t kScaleBytes = 4;

/// The routed rows that an operator sends to the experts or back; backward: their gradient.
class RoutedRows {
 public:
  RoutedRows(OperatorProgram& program, TensorId tensor)
      : program_(program), tensor_(tensor), rows_(program.activation(tensor)) {}

  std::int64_t home() const { return count(/*busiest=*/false); }
  std::int64_t arrived() const { return count(/*busiest=*/true); }
  Bytes at_home() const { return stored(home()); }
  BufferKey key() const {
    return LiveBuffers::key(tensor_, program_.is_forward() ? Form::kValue : Form::kGradient);
  }

  /// From the ranks of the tokens to those of their experts. Rows may be dispatched in fp8.
  void reach_experts() {
    exchange(at_experts());
    all_to_all(row_bytes(/*outward=*/true));
    if (expert_tensor().ranks == 1) return;
    replace_while_sending(with_group(), with_group());
    over_expert_tensor(CollectiveKind::kAllGather, row_bytes(/*outward=*/true));
  }
  /// Back to the ranks of their tokens, in the stored type.
  void leave_experts() {
    if (expert_tensor().ranks > 1) {
      sum_over_expert_tensor();
      over_expert_tensor(CollectiveKind::kReduceScatter, row_bytes(/*outward=*/false));
    }
    exchange(at_home());
    all_to_all(row_bytes(/*outward=*/false));
  }

 private:
  const ShardShape& shard() const { return program_.shard(); }
  const GroupShape& expert_tensor() const { return program_.layer().groups.expert_tensor; }
  std::int64_t count(bool busiest) const {
    return routed_rows(shard(), {rows_.rows_per_token, std::max(1, rows_.experts)}, busiest);
  }
  Bytes stored(std::int64_t rows) const { return Bytes(rows * rows_.width * program_.element()); }
  Bytes at_experts() const { return stored(arrived()); }
  Bytes with_group() const { return at_experts() * std::int64_t{shard().degrees.expert_tensor}; }

  Bytes row_bytes(bool outward) const {
    if (outward && shard().routing.fp8_dispatch)
      return Bytes(rows_.width + kScaleBytes * divide_up(rows_.width, kScaledElements));
    return stored_element(shard().dtype) * rows_.width;
  }

  // ---- buffers ----

  void exchange(Bytes then) {
    if (program_.layer().groups.expert.ranks > 1) replace_while_sending(at_experts(), then);
  }
  /// The source rows, a communication buffer, and the destination rows.
  void replace_while_sending(Bytes traveling, Bytes then) {
    LiveBuffers* live = program_.buffers();
    if (live == nullptr) return;
    const HeldBuffer before = live->consume(key());
    live->meanwhile(before, [&] {
      live->meanwhile({traveling, MemoryClass::kCommunication}, [&] {
        live->acquire(key(), {then, before.what});
      });
    });
  }
  /// Every rank has a partial sum of the rows of its group and reduces its own rows in fp32.
  void sum_over_expert_tensor() {
    LiveBuffers* live = program_.buffers();
    if (live == nullptr) return;
    const HeldBuffer summands = live->consume(key());
    const HeldBuffer all{with_group(), MemoryClass::kCommunication};
    const HeldBuffer sum{Bytes(arrived() * rows_.width * kFloat32Bytes), MemoryClass::kWorking};
    live->meanwhile(summands, [&] {
      live->meanwhile(all, [&] {    // sorted by rank
        live->meanwhile(all, [&] {  // this rank's rows from every rank
          live->meanwhile(sum, [&] { live->acquire(key(), {at_experts(), summands.what}); });
        });
      });
    });
  }

  // ---- collectives ----

  /// Expected number of copies of a token that leave its node: of M out of N nodes chosen
  /// uniformly, M (N - 1) / N are other nodes.
  Bytes sent_across_nodes(Bytes row) const {
    const int nodes = program_.layer().groups.expert.nodes;
    const int limit = std::min(shard().routing.node_limit, nodes);
    if (limit == 0 || nodes == 1) return Bytes(0);
    const double rows_per_choice = static_cast<double>(arrived()) / rows_.rows_per_token;
    const double copies = static_cast<double>(limit) * (nodes - 1) / nodes;
    return Bytes(static_cast<std::int64_t>(
        std::ceil(rows_per_choice * copies * static_cast<double>(row.value))));
  }
  void all_to_all(Bytes row) {
    Collective exchange;
    exchange.kind = CollectiveKind::kAllToAll;
    exchange.axis = Axis::kExpert;
    exchange.bytes = row * arrived();
    exchange.group = program_.layer().groups.expert;
    exchange.sent_across_nodes = sent_across_nodes(row);
    exchange.overlap.other_microbatch = shard().routing.overlap;
    program_.communicate(exchange, tensor_);
  }
  void over_expert_tensor(CollectiveKind kind, Bytes row) {
    program_.communicate({.kind = kind,
                          .axis = Axis::kExpert,
                          .bytes = row * (arrived() * expert_tensor().ranks),
                          .group = expert_tensor(),
                          .overlap = {.other_microbatch = shard().routing.overlap}},
                         tensor_);
  }

  OperatorProgram& program_;
  TensorId tensor_;
  const ActivationTensor& rows_;
};

/// Without sequence parallelism each tensor rank dispatches its block of the replicated tokens.
bool dispatches_block(const ShardedOperator& program) {
  return program.is_cut() && !program.shard().sequence_parallel;
}

void gather_tokens(std::int64_t width, TensorId tensor, OperatorProgram& program) {
  if (program.shard().sequence_parallel) return;
  Collective gather;
  gather.kind = CollectiveKind::kAllGather;
  gather.axis = Axis::kTensor;
  gather.bytes = program.token_bytes(width);
  gather.group = program.layer().groups.tensor;
  program.communicate(gather, tensor);
}

}  // namespace

/// Each token is read once and written K times; backward: vice versa.
void forward(const TokenDispatch& dispatch, OperatorProgram& program) {
  RoutedRows rows(program, program.output());
  if (LiveBuffers* live = program.buffers(); live != nullptr)
    live->acquire(rows.key(), {rows.at_home(), MemoryClass::kActivations});
  Kernel kernel = program.kernel(KernelKind::kMemoryBound, Routine::kDispatch);
  kernel.memory_traffic =
      Bytes((program.tokens().dispatched + rows.home()) * dispatch.width * program.element());
  kernel.needs_counts = program.shard().routing.capacity == 0;
  program.append(kernel);
  rows.reach_experts();
}

void backward_input(const TokenDispatch& dispatch, OperatorProgram& program) {
  RoutedRows rows(program, program.output());
  rows.leave_experts();
  const BufferKey partial = LiveBuffers::key(program.input(), Form::kPartialGradient);
  LiveBuffers* live = program.buffers();
  if (live != nullptr) {
    const HeldBuffer sum{live->local(program.input()), MemoryClass::kWorking};
    if (dispatches_block(program))
      live->acquire(partial, sum);
    else
      live->meanwhile(sum, [&] { live->acquire_gradient(program.input()); });
  }
  program.memory_bound(Routine::kDispatch, (program.tokens().dispatched + rows.home()) *
                                               dispatch.width * program.element());
  if (live != nullptr && dispatches_block(program)) {
    const HeldBuffer sum = live->consume(partial);
    live->meanwhile(sum, [&] { live->acquire_gradient(program.input()); });
  }
  gather_tokens(dispatch.width, program.input(), program);
}

void forward(const TokenCombine& combine, OperatorProgram& program) {
  RoutedRows rows(program, program.input());
  rows.leave_experts();
  program.acquire_outputs();
  program.memory_bound(Routine::kCombine, (program.tokens().dispatched + rows.home()) *
                                              combine.width * program.element());
  gather_tokens(combine.width, program.output(), program);
}

/// Gradients of the scores are the router's.
void backward_input(const TokenCombine& combine, OperatorProgram& program) {
  RoutedRows rows(program, program.input());
  if (LiveBuffers* live = program.buffers(); live != nullptr)
    live->acquire(rows.key(), {rows.at_home(), MemoryClass::kWorking});
  program.memory_bound(Routine::kCombine, (program.tokens().dispatched + rows.home()) *
                                              combine.width * program.element());
  rows.reach_experts();
}

}  // namespace meshwright

// Attention: softmax(Q K^T) V without its projections, fused or on materialized scores, and its
// context-parallel communication; see ContextAlgorithm.
//
// Ring and all-gather: each rank holds an early and a late chunk of the sequence (zigzag), so that
// with a causal mask all ranks do the same work in every ring step: of 2 n chunks, rank i holds i
// and 2 n - 1 - i. The early keys of rank j < i are visible to both chunks of rank i; both chunks
// of keys of rank j > i are visible to the late chunk only; its own keys amount to two half chunks
// and one full one. Each step is therefore two chunk products.
//
// Ring backward (as in zhuzilin/ring-flash-attention): keys and values circulate as in the forward
// pass; their gradients follow one step later, accumulate on every rank, and need one additional
// hop to return to their owner, which is exposed.
//
// Longer than 400 lines: one operator, with three kinds of context parallelism and two algorithms.
#include "core/operators/attention.hpp"

#include <algorithm>

#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

// ---- kernels --------------------------------------------------------------------------------

bool exchanges_heads(const ShardShape& shard) {
  return shard.context == ContextAlgorithm::kAllToAll;
}

struct LocalAttention {
  std::int64_t heads = 0, key_value_heads = 0, queries = 0, keys = 0;
};
LocalAttention local_attention(const Attention& attention, const ShardedOperator& program) {
  const ShardShape& shard = program.shard();
  // All-to-all yields full sequences of a shard of the heads.
  const int parts = exchanges_heads(shard) ? shard.degrees.context : 1;
  const int ranks = program.tensor_ranks();
  return {.heads = divide_up(divide_up(attention.heads, ranks), parts),
          .key_value_heads = divide_up(divide_up(attention.key_value_heads, ranks), parts),
          .queries = exchanges_heads(shard) ? shard.sequence_length : program.tokens().sequence,
          .keys = shard.sequence_length};
}

/// Average number of visible keys per query. Causal with window w (default: T): w - w^2 / 2T, i.e.
/// T / 2 without a window. With chunks of c, of which the last has r: (T - r) c / T + r^2 / T, or
/// half of it. Context parallelism balances the causal triangle over its ranks.
double mean_keys(const Attention& attention, std::int64_t sequence_length) {
  const auto keys = static_cast<double>(sequence_length);
  if (attention.chunk && *attention.chunk < sequence_length) {
    const auto chunk = static_cast<double>(*attention.chunk);
    const auto rest = static_cast<double>(sequence_length % *attention.chunk);
    const double seen = ((keys - rest) * chunk + rest * rest) / keys;
    return attention.causal ? seen / 2 : seen;
  }
  const double window =
      std::min(keys, static_cast<double>(attention.window.value_or(sequence_length)));
  return attention.causal ? window - window * window / (2 * keys) : window;
}

/// The most keys that a query sees.
std::int64_t most_keys(const Attention& attention, std::int64_t keys) {
  return std::min({keys, attention.window.value_or(keys), attention.chunk.value_or(keys)});
}

/// Forward: QK^T and PV; backward: QK^T again, then dV, dP, dQ, dK.
Kernel fused_kernel(const Attention& attention, const OperatorProgram& program) {
  const ShardShape& shard = program.shard();
  const LocalAttention shape = local_attention(attention, program);
  Kernel kernel = program.kernel(KernelKind::kAttention, Routine::kAttention);
  kernel.batch = shard.sequences * shape.heads;
  kernel.m = shape.queries;
  kernel.n = most_keys(attention, shape.keys);
  kernel.k = attention.key_size;
  kernel.value_size = attention.value_size;
  kernel.causal = attention.causal;
  kernel.dropout = attention.dropout > 0;
  const auto key_size = static_cast<double>(attention.key_size);
  const auto value_size = static_cast<double>(attention.value_size);
  const bool forward = program.is_forward();
  const double products = forward ? key_size + value_size : 3 * key_size + 2 * value_size;
  kernel.flops = Flops(2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                       mean_keys(attention, shard.sequence_length) * products);
  const std::int64_t query = shape.queries * shape.heads * attention.key_size;
  const std::int64_t output = shape.queries * shape.heads * attention.value_size;
  const std::int64_t key_value =
      shape.keys * shape.key_value_heads * (attention.key_size + attention.value_size);
  // In ring attention every chunk of keys reads the queries again, and all but the first also read
  // the partial output.
  if (shard.context == ContextAlgorithm::kRing) kernel.pieces = shard.degrees.context;
  const std::int64_t pieces = kernel.pieces;
  // Backward reads the same and the output's gradient, and writes gradients of Q, K, V.
  const std::int64_t elements = pieces * query + key_value + (2 * pieces - 1) * output;
  kernel.memory_traffic =
      Bytes(shard.sequences * program.element() * (forward ? elements : 2 * elements));
  return kernel;
}

void batched_product(const Attention& attention, const MatrixShape& shape,
                     OperatorProgram& program) {
  Kernel kernel = program.kernel(KernelKind::kGemm, Routine::kProduct);
  kernel.batch = program.shard().sequences * local_attention(attention, program).heads;
  kernel.m = shape.m, kernel.n = shape.n, kernel.k = shape.k;
  kernel.flops = Flops(2.0 * static_cast<double>(kernel.batch) * static_cast<double>(shape.m) *
                       static_cast<double>(shape.n) * static_cast<double>(shape.k));
  kernel.memory_traffic = Bytes(kernel.batch * program.element() *
                                (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n));
  program.append(kernel);
}

void standard_kernels(const Attention& attention, OperatorProgram& program) {
  const LocalAttention shape = local_attention(attention, program);
  const std::int64_t q = shape.queries, n = shape.keys, element = program.element();
  const std::int64_t key = attention.key_size, value = attention.value_size;
  const std::int64_t scores = program.shard().sequences * shape.heads * q * n;
  const bool drops = attention.dropout > 0;
  const std::int64_t dropout_bytes = drops ? 2 * element + kMaskBytes : 0;
  const int launches = drops ? 2 : 1;
  const auto product = [&](const MatrixShape& sizes) {
    batched_product(attention, sizes, program);
  };
  if (program.is_forward()) {
    product({q, n, key});
    program.memory_bound(Routine::kSoftmax, scores * (2 * element + dropout_bytes), launches);
    product({q, value, n});
    return;
  }
  product({q, n, value});  // gradient of the probabilities
  product({n, value, q});  // of the values
  // Softmax backward reads probabilities and their gradient, writes the scores' gradient.
  program.memory_bound(Routine::kSoftmax, scores * (3 * element + dropout_bytes), launches);
  product({q, key, n});  // of the queries
  product({n, key, q});  // of the keys
}

// ---- buffers --------------------------------------------------------------------------------

/// Operands of the buffer descriptions below.
struct AttentionBuffers {
  const Attention& attention;
  OperatorProgram& program;
  LiveBuffers& live;

  std::int64_t heads() const { return divide_up(attention.heads, program.tensor_ranks()); }
  BufferKey sums() const { return {program.id().value, Form::kSoftmaxSums}; }
  void acquire_sums() const {
    live.acquire(sums(),
                 {softmax_statistics(attention, program.shard()), MemoryClass::kActivations});
  }
  /// The keys and values of one rank, or their gradients.
  HeldBuffer blocks(int count) const {
    return {(live.local(program.input(1)) + live.local(program.input(2))) * count,
            MemoryClass::kCommunication};
  }
  Bytes inputs() const {
    Bytes sum;
    for (const TensorId in : program.op().inputs) sum += live.local(in);
    return sum;
  }
};

HeldBuffer fp32_buffer(std::int64_t count) {
  return {Bytes(count * kFloat32Bytes), MemoryClass::kWorking};
}
/// Send and receive buffers of an all-to-all, packed by rank.
HeldBuffer exchange_buffers(Bytes traveling) {
  return {traveling * 2, MemoryClass::kCommunication};
}

/// Results are combined in fp32, in addition to the current and the incoming block of keys; the
/// result of one call covers half of a rank's tokens of one sequence.
void hold_ring_forward(const AttentionBuffers& buffers) {
  const ShardedOperator& program = buffers.program;
  LiveBuffers& live = buffers.live;
  const TensorId out = program.output();
  const std::int64_t columns = buffers.heads() * buffers.attention.value_size;
  buffers.acquire_sums();
  live.meanwhile(fp32_buffer(program.tokens().gathered * columns), [&] {
    live.meanwhile(buffers.blocks(2), [&] {
      live.meanwhile(fp32_buffer(program.tokens().sequence / 2 * columns));
      live.acquire(LiveBuffers::key(out), live.value_of(out));
    });
  });
}

/// The gradients of the current block arrive one step later than the block.
void hold_ring_backward(const AttentionBuffers& buffers) {
  LiveBuffers& live = buffers.live;
  const std::int64_t columns = buffers.heads() * buffers.attention.key_size;
  live.meanwhile(fp32_buffer(buffers.program.tokens().gathered * columns), [&] {
    live.meanwhile(buffers.blocks(3), [&] { live.acquire_gradient(buffers.program.input()); });
  });
}

bool is_parallel(const ShardedOperator& program, ContextAlgorithm algorithm) {
  return program.shard().degrees.context > 1 && program.shard().context == algorithm;
}

void hold_forward(const AttentionBuffers& buffers) {
  const auto& [attention, program, live] = buffers;
  const TensorId out = program.output();
  if (is_parallel(program, ContextAlgorithm::kRing)) return hold_ring_forward(buffers);
  if (is_parallel(program, ContextAlgorithm::kAllToAll))
    live.acquire(LiveBuffers::key(out, Form::kHeadCutValue),
                 {live.local(out), MemoryClass::kCommunication});
  else
    live.acquire(LiveBuffers::key(out), live.value_of(out));
  buffers.acquire_sums();
}

/// With all keys on every rank, each rank has partial gradients of all of them.
void hold_backward(const AttentionBuffers& buffers) {
  const auto& [attention, program, live] = buffers;
  if (is_parallel(program, ContextAlgorithm::kRing)) return hold_ring_backward(buffers);
  const bool by_heads = is_parallel(program, ContextAlgorithm::kAllToAll);
  const int ranks = program.shard().degrees.context;
  for (std::size_t i = 0; i < program.op().inputs.size(); ++i) {
    const TensorId in = program.input(i);
    if (by_heads)
      live.acquire(LiveBuffers::key(in, Form::kHeadCutGradient),
                   {live.local(in), MemoryClass::kWorking});
    else if (i > 0 && ranks > 1)
      live.acquire(LiveBuffers::key(in, Form::kPartialGradient),
                   {live.local(in) * ranks, MemoryClass::kWorking});
    else
      live.acquire_gradient(in);
  }
}

// ---- context parallelism --------------------------------------------------------------------

/// The kernels of one pass with the communication before, during and after them.
class ContextParallel {
 public:
  ContextParallel(const Attention& attention, OperatorProgram& program)
      : attention_(attention),
        program_(program),
        bytes_(attention_bytes(attention, program.shard())),
        group_(program.layer().groups.context) {}

  void describe() {
    if (group_.ranks == 1) return run_kernels();
    switch (program_.shard().context) {
      case ContextAlgorithm::kAllGather:
        return around_all_keys();
      case ContextAlgorithm::kRing:
        return around_the_ring();
      case ContextAlgorithm::kAllToAll:
        return around_all_tokens();
    }
  }

 private:
  std::optional<AttentionBuffers> buffers() const {
    if (program_.buffers() == nullptr) return std::nullopt;
    return AttentionBuffers{attention_, program_, *program_.buffers()};
  }

  void run_kernels() {
    if (const auto c = buffers()) program_.is_forward() ? hold_forward(*c) : hold_backward(*c);
    if (program_.shard().attention == AttentionAlgorithm::kFlash)
      program_.append(fused_kernel(attention_, program_));
    else
      standard_kernels(attention_, program_);
  }
  int kernel_count() const {
    if (program_.shard().attention == AttentionAlgorithm::kFlash) return 1;
    return program_.is_forward() ? 3 : 5;
  }

  // ---- all-gather of keys and values, reduce-scatter of their gradients ----

  void around_all_keys() {
    if (const auto c = buffers())
      each_key_and_value(*c, [&](TensorId in, const HeldBuffer& all) {
        c->live.meanwhile(
            all, [&] { c->live.acquire(LiveBuffers::key(in, Form::kGatheredValue), all); });
      });
    communicate(CollectiveKind::kAllGather, bytes_.key_values * group_.ranks);
    run_kernels();
    if (program_.is_forward()) return;
    if (const auto c = buffers())
      each_key_and_value(*c, [&](TensorId in, const HeldBuffer& all) {
        const HeldBuffer sums = c->live.consume(LiveBuffers::key(in, Form::kPartialGradient));
        c->live.meanwhile(sums,
                          [&] { c->live.meanwhile(all, [&] { c->live.acquire_gradient(in); }); });
      });
    communicate(CollectiveKind::kReduceScatter, bytes_.key_values * group_.ranks);
  }
  /// Keys, then values, through a buffer in rank order.
  template <class Visit>
  void each_key_and_value(const AttentionBuffers& c, const Visit& visit) const {
    for (const TensorId in : {program_.input(1), program_.input(2)})
      visit(in, HeldBuffer{c.live.local(in) * group_.ranks, MemoryClass::kCommunication});
  }

  // ---- keys and values travel around a ring ----

  void around_the_ring() {
    const bool forward = program_.is_forward();
    travel(forward ? bytes_.key_values : bytes_.key_values * 2, group_.ranks - 1,
           {.kernels = kernel_count(), .pieces = group_.ranks});
    run_kernels();
    if (forward) return;
    if (const auto c = buffers())
      c->live.meanwhile(c->blocks(1), [&] {
        c->live.acquire_gradient(program_.input(1));
        c->live.acquire_gradient(program_.input(2));
      });
    travel(bytes_.key_values, 1, {});
  }

  // ---- all-to-all: whole sequences of some of the heads ----

  void around_all_tokens() {
    const bool forward = program_.is_forward();
    if (const auto c = buffers()) forward ? queries_to_heads(*c) : gradients_to_heads(*c);
    communicate(CollectiveKind::kAllToAll,
                forward ? bytes_.queries + bytes_.key_values : bytes_.outputs);
    run_kernels();
    if (const auto c = buffers()) forward ? outputs_to_tokens(*c) : gradients_to_tokens(*c);
    communicate(CollectiveKind::kAllToAll,
                forward ? bytes_.outputs : bytes_.queries + bytes_.key_values);
  }
  void queries_to_heads(const AttentionBuffers& c) const {
    const std::vector<TensorId>& inputs = program_.op().inputs;
    for (const TensorId in : inputs)
      c.live.acquire(LiveBuffers::key(in, Form::kHeadCutValue),
                     {c.live.local(in), MemoryClass::kActivations});
    c.live.meanwhile(exchange_buffers(c.inputs()));
    if (program_.layer().exchanges_heads_again) return;
    for (const TensorId in : inputs) c.live.consume_if_live(LiveBuffers::key(in));
  }
  void outputs_to_tokens(const AttentionBuffers& c) const {
    const TensorId out = program_.output();
    const HeldBuffer heads = c.live.consume(LiveBuffers::key(out, Form::kHeadCutValue));
    c.live.meanwhile(heads, [&] {
      c.live.acquire(LiveBuffers::key(out), c.live.value_of(out));
      c.live.meanwhile(exchange_buffers(c.live.local(out)));
    });
  }
  /// One number per row and head, computed from the full output, is sent together with the
  /// gradient.
  void gradients_to_heads(const AttentionBuffers& c) const {
    const TensorId out = program_.output();
    const HeldBuffer numbers{softmax_statistics(attention_, program_.shard()),
                             MemoryClass::kWorking};
    c.live.meanwhile(numbers, [&] {
      c.live.acquire(LiveBuffers::key(out, Form::kHeadCutGradient),
                     {c.live.local(out), MemoryClass::kCommunication});
      c.live.meanwhile(exchange_buffers(c.live.local(out)));
      c.live.meanwhile(exchange_buffers(numbers.bytes));
    });
  }
  void gradients_to_tokens(const AttentionBuffers& c) const {
    for (const TensorId in : program_.op().inputs)
      c.live.acquire(LiveBuffers::gradient(in), c.live.gradient_of(in));
    c.live.meanwhile(exchange_buffers(c.inputs()));
    for (const TensorId in : program_.op().inputs)
      for (const Form form : {Form::kHeadCutGradient, Form::kHeadCutValue})
        c.live.consume_if_live(LiveBuffers::key(in, form));
    c.live.consume_if_live(LiveBuffers::key(program_.output(), Form::kHeadCutGradient));
  }

  // ---- collectives ----

  void communicate(CollectiveKind kind, Bytes bytes) {
    program_.communicate(
        {.kind = kind, .axis = program_.layer().context_axis, .bytes = bytes, .group = group_},
        TensorId(-1));
  }
  void travel(Bytes message, int rounds, const Overlap& overlap) {
    Collective ring;
    ring.kind = CollectiveKind::kRingExchange;
    ring.axis = program_.layer().context_axis;
    ring.bytes = message;
    ring.group = group_;
    ring.rounds = rounds;
    ring.overlap = overlap;
    program_.communicate(ring, TensorId(-1));
  }

  const Attention& attention_;
  OperatorProgram& program_;
  AttentionBytes bytes_;
  const GroupShape& group_;
};

}  // namespace

void forward(const Attention& attention, OperatorProgram& program) {
  program.gather_entering();
  ContextParallel(attention, program).describe();
}

void backward_input(const Attention& attention, OperatorProgram& program) {
  ContextParallel(attention, program).describe();
  program.reduce_entering_gradients();
}

double multiply_adds(const Attention& attention, std::int64_t sequence_length) {
  return static_cast<double>(attention.heads * (attention.key_size + attention.value_size)) *
         static_cast<double>(most_keys(attention, sequence_length));
}

AttentionBytes attention_bytes(const Attention& a, const ShardShape& shard) {
  const std::int64_t tokens = local_tokens(shard).gathered;
  const std::int64_t heads = divide_up(a.heads, shard.degrees.tensor);
  const std::int64_t key_heads = divide_up(a.key_value_heads, shard.degrees.tensor);
  const Bytes row = stored_element(shard.dtype) * tokens;
  return {.queries = row * (heads * a.key_size),
          .key_values = row * (key_heads * (a.key_size + a.value_size)),
          .outputs = row * (heads * a.value_size)};
}

Bytes softmax_statistics(const Attention& attention, const ShardShape& shard) {
  return Bytes(local_tokens(shard).gathered * divide_up(attention.heads, shard.degrees.tensor) *
               kFloat32Bytes);
}

ContextBuffers context_buffers(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  ContextBuffers most;
  if (shard.degrees.context == 1) return most;
  for (const Operator& op : operators_of(model, layer)) {
    const auto* attention = std::get_if<Attention>(&op.shape);
    if (attention == nullptr) continue;
    const AttentionBytes bytes = attention_bytes(*attention, shard);
    const std::int64_t blocks =
        shard.context == ContextAlgorithm::kRing ? 2 : shard.degrees.context;
    ContextBuffers held{bytes.key_values * blocks, bytes.key_values * (2 * blocks)};
    if (shard.context == ContextAlgorithm::kAllToAll)
      held.forward = held.backward = bytes.queries + bytes.key_values;
    most.forward = std::max(most.forward, held.forward);
    most.backward = std::max(most.backward, held.backward);
  }
  return most;
}

}  // namespace meshwright

// Communication of context-parallel attention; see ContextAlgorithm.
//
// Each rank holds an early and a late chunk of the sequence (zigzag), so that with a causal mask
// all ranks do the same work in every ring step: of 2 n chunks, rank i holds i and 2 n - 1 - i. The
// early keys of rank j < i are visible to both chunks of rank i; both chunks of keys of rank j > i
// are visible to the late chunk only; its own keys amount to two half chunks and one full one. Each
// step is therefore two chunk products.
//
// Ring backward (as in zhuzilin/ring-flash-attention): keys and values circulate as in the forward
// pass; their gradients follow one step later, accumulate on every rank, and need one additional
// hop to return to their owner, which is exposed.
#include "core/lowering/context.hpp"
#include "core/lowering/layers.hpp"

namespace meshwright {
namespace {

class ContextLowering {
 public:
  ContextLowering(const AttentionCall& call, std::span<const Kernel> kernels,
                  std::vector<Step>& steps)
      : call_(call),
        bytes_(attention_bytes(call.attention, call.shard)),
        ranks_(call.context.ranks),
        kernels_(kernels),
        steps_(steps) {}

  void run() {
    const bool forward = call_.served.phase == Phase::kForward;
    switch (call_.shard.context) {
      case ContextAlgorithm::kAllGather:
        communicate(CollectiveKind::kAllGather, bytes_.key_values * ranks_);
        append_kernels();
        if (!forward) communicate(CollectiveKind::kReduceScatter, bytes_.key_values * ranks_);
        return;
      case ContextAlgorithm::kRing:
        travel(forward ? bytes_.key_values : bytes_.key_values * 2, ranks_ - 1,
               {.kernels = static_cast<int>(kernels_.size()), .pieces = ranks_});
        append_kernels();
        if (!forward) travel(bytes_.key_values, 1, {});
        return;
      case ContextAlgorithm::kAllToAll:
        communicate(CollectiveKind::kAllToAll,
                    forward ? bytes_.queries + bytes_.key_values : bytes_.outputs);
        append_kernels();
        communicate(CollectiveKind::kAllToAll,
                    forward ? bytes_.outputs : bytes_.queries + bytes_.key_values);
        return;
    }
  }

 private:
  void communicate(CollectiveKind kind, Bytes bytes) {
    append_collective(
        {.kind = kind, .axis = Axis::kContext, .bytes = bytes, .group = call_.context},
        call_.served, steps_);
  }
  void travel(Bytes message, int rounds, const Overlap& overlap) {
    Collective ring;
    ring.kind = CollectiveKind::kRingExchange;
    ring.axis = Axis::kContext;
    ring.bytes = message;
    ring.group = call_.context;
    ring.rounds = rounds;
    ring.overlap = overlap;
    append_collective(ring, call_.served, steps_);
  }
  void append_kernels() { steps_.insert(steps_.end(), kernels_.begin(), kernels_.end()); }

  const AttentionCall& call_;
  AttentionBytes bytes_;
  int ranks_;
  std::span<const Kernel> kernels_;
  std::vector<Step>& steps_;
};

}  // namespace

void append_attention(const AttentionCall& call, std::span<const Kernel> kernels,
                      std::vector<Step>& steps) {
  if (call.context.ranks == 1)
    steps.insert(steps.end(), kernels.begin(), kernels.end());
  else
    ContextLowering(call, kernels, steps).run();
}

}  // namespace meshwright

#include "models/kineto/kineto_streams.hpp"

#include <array>

namespace meshwright {
namespace {

bool is_norm(Routine routine) {
  return routine == Routine::kLayerNorm || routine == Routine::kRmsNorm;
}

void add_to(KinetoStream& stream, const OtherKernels& other) {
  stream.seconds += other.seconds;
  stream.kernels += other.kernels;
}

class StreamSums {
 public:
  explicit StreamSums(const KinetoKernels& kernels)
      : kernels_(kernels), layers_(count_layers(kernels)) {}

  KinetoStreams write() {
    for (const MeasuredShape& shape : kernels_.shapes)
      if (shape.kind == KernelKind::kMemoryBound) add(shape);
    find_hidden_size();
    for (const OtherKernels& other : kernels_.others)
      if (other.pass != KinetoPass::kUpdate) distribute(other);
    for (const KinetoPass pass : {KinetoPass::kForward, KinetoPass::kBackward}) {
      count_per_layer({Routine::kRotary, pass, rotary_elements_}, 1);
      count_per_layer({Routine::kResidual, pass, hidden_elements_}, additions_per_layer());
    }
    count_decomposed();
    return std::move(result_);
  }

 private:
  void add(const MeasuredShape& shape) {
    KinetoStream& stream = result_.streams[{shape.routine, shape.pass, shape.size.elements}];
    stream.seconds += shape.total();
    stream.counted += shape.counted;
    stream.recomputed += shape.recomputed;
    stream.kernels += shape.kernels;
    if (shape.counted > 0)
      stream.times.insert(stream.times.end(), shape.times.begin(), shape.times.end());
  }

  /// Elements of the hidden states: those of the most frequent norms, since every layer has two,
  /// and at most one each of queries and keys.
  void find_hidden_size() {
    std::int64_t most = 0;
    for (const auto& [key, stream] : result_.streams) {
      const auto [routine, pass, elements] = key;
      if (is_norm(routine) && pass == KinetoPass::kForward && stream.counted > most) {
        most = stream.counted;
        hidden_elements_ = elements;
      }
    }
    for (const MeasuredShape& shape : kernels_.shapes)
      if (shape.routine == Routine::kAttention && shape.pass == KinetoPass::kForward) {
        const OperatorSize& s = shape.size;
        head_size_ = s.k;
        rotary_elements_ = (s.batch * s.m + s.sequences * s.key_heads * s.n) * s.k;
      }
  }

  void distribute(const OtherKernels& other) {
    if (other.belongs_to) {
      const auto [routine, elements] = *other.belongs_to;
      add_to(result_.streams[{routine, other.pass, elements}], other);
      return;
    }
    constexpr std::array kOwners{Routine::kSwiGlu, Routine::kGelu, Routine::kRelu,
                                 Routine::kCrossEntropy, Routine::kSoftmax};
    if (other.largest.elements != hidden_elements_)
      for (const Routine routine : kOwners)
        if (const auto at = result_.streams.find({routine, other.pass, other.largest.elements});
            at != result_.streams.end()) {
          add_to(at->second, other);
          return;
        }
    const LargestTensor& tensor = other.largest;
    const bool per_head = tensor.dimensions == 4 && head_size_ > 0 &&
                          (tensor.last_size == head_size_ || 2 * tensor.last_size == head_size_);
    if (per_head) {
      add_to(result_.streams[{Routine::kRotary, other.pass, rotary_elements_}], other);
      return;
    }
    add_to(result_.streams[{Routine::kResidual, other.pass, hidden_elements_}], other);
    if (other.pass == KinetoPass::kForward && tensor.elements == hidden_elements_)
      additions_ += other.additions;
  }

  /// Parallel attention and feed-forward layers share one addition.
  int additions_per_layer() const {
    return additions_ > 0 && 2 * additions_ < 3 * layers_.forward ? 1 : 2;
  }

  void count_per_layer(const KinetoStreamKey& key, int per_layer) {
    const auto at = result_.streams.find(key);
    if (at == result_.streams.end()) return;
    const auto [routine, pass, elements] = key;
    KinetoStream& stream = at->second;
    stream.counted =
        per_layer * (pass == KinetoPass::kForward ? layers_.forward : layers_.backward);
    if (stream.counted > 0 && elements > 0) {
      stream.times = {stream.seconds / static_cast<double>(stream.counted)};
      return;
    }
    KinetoStream& sum = result_.unattributed[pass];
    sum.seconds += stream.seconds;
    sum.kernels += stream.kernels;
    result_.streams.erase(at);
  }

  void count_decomposed() {
    for (auto& [key, stream] : result_.streams) {
      const auto [routine, pass, elements] = key;
      if (pass != KinetoPass::kBackward || stream.counted > 0) continue;
      const auto forward = result_.streams.find({routine, KinetoPass::kForward, elements});
      if (forward == result_.streams.end()) continue;
      stream.counted = forward->second.counted - forward->second.recomputed;
      if (stream.counted > 0) stream.times = {stream.seconds / static_cast<double>(stream.counted)};
    }
  }

  const KinetoKernels& kernels_;
  KinetoLayers layers_;
  std::int64_t hidden_elements_ = 0, rotary_elements_ = 0, head_size_ = 0, additions_ = 0;
  KinetoStreams result_;
};

}  // namespace

KinetoLayers count_layers(const KinetoKernels& kernels) {
  KinetoLayers fused, softmax;
  for (const MeasuredShape& shape : kernels.shapes) {
    if (shape.pass != KinetoPass::kForward) continue;
    if (shape.routine != Routine::kAttention && shape.routine != Routine::kSoftmax) continue;
    KinetoLayers& layers = shape.routine == Routine::kAttention ? fused : softmax;
    layers.forward += shape.counted;
    layers.backward += shape.counted - shape.recomputed;
  }
  return fused.forward > 0 ? fused : softmax;
}

KinetoStreams add_up_streams(const KinetoKernels& kernels) { return StreamSums(kernels).write(); }

}  // namespace meshwright

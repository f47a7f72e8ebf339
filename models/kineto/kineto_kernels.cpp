// A single class of more than 400 lines: every step of the join reads the same tables of operators,
// names and sequence numbers.
#include "models/kineto/kineto_kernels.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/base/median.hpp"

namespace meshwright {
namespace {

constexpr double kSecondsPerNs = 1e-9;
constexpr std::size_t kMostShapes = 65'536;

bool is_known_elementwise(KernelNameKind kind) {
  return kind == KernelNameKind::kElementwise || kind == KernelNameKind::kReduction ||
         kind == KernelNameKind::kOther;
}

KernelKind kind_of(Routine routine, InputLayout shape) {
  if (routine == Routine::kAttention) return KernelKind::kAttention;
  if (routine == Routine::kUpdate) return KernelKind::kOptimizer;
  if (routine != Routine::kProduct) return KernelKind::kMemoryBound;
  return shape == InputLayout::kGroupedProduct ? KernelKind::kGroupedGemm : KernelKind::kGemm;
}

/// What a kernel belongs to: the outermost operator that is still the same routine.
struct Owner {
  std::int32_t op = -1;  ///< -1: none
  Routine routine = Routine::kProduct;
  KernelKind kind = KernelKind::kMemoryBound;
  InputLayout shape = InputLayout::kElements;
  OperatorSize size = {};
  bool counts = true;
  bool is_weight_gradient = false;  ///< known to be: of a custom autograd function
  int ordinal = 0;                  ///< of several products of one operator
};

class KernelJoin {
 public:
  KernelJoin(const KinetoTrace& trace, const KinetoWindow& window, const Intervals& communication)
      : trace_(trace), window_(window), communication_(communication) {
    for (std::size_t i = 0; i < trace.operators.size(); ++i)
      if (trace.operators[i].external_id >= 0)
        by_external_id_.try_emplace(trace.operators[i].external_id, static_cast<std::int32_t>(i));
  }

  KinetoKernels measure() {
    find_forward_operators();
    find_passes_of_calls();
    result_.gap_seconds = typical_gap();
    for (const KinetoGpuWork& work : trace_.gpu)
      if (work.kind == KinetoGpuKind::kKernel && !is_communication(trace_, work)) add(work);
    for (const auto& [key, calls] : instances_) finish(calls);
    return std::move(result_);
  }

 private:
  struct Instance {
    Owner owner;
    KinetoPass pass = KinetoPass::kForward;
    std::int64_t busy_ns = 0, beside_ns = 0, kernels = 0;
  };

  const KinetoOperator& op(std::int32_t index) const {
    return trace_.operators[static_cast<std::size_t>(index)];
  }

  // ---- from kernel to operator ----

  const KinetoCall* call_of(const KinetoGpuWork& work) const {
    if (work.correlation < 0) return nullptr;
    const auto at = std::lower_bound(
        trace_.calls.begin(), trace_.calls.end(), work.correlation,
        [](const KinetoCall& call, std::int64_t c) { return call.correlation < c; });
    return at != trace_.calls.end() && at->correlation == work.correlation ? &*at : nullptr;
  }

  /// Innermost operator on the thread at that time; -1: none.
  std::int32_t operator_at(std::uint32_t thread, std::int64_t ns) const {
    const auto& operators = trace_.operators;
    const auto after =
        std::upper_bound(operators.begin(), operators.end(), std::pair(thread, ns),
                         [](const auto& at, const KinetoOperator& candidate) {
                           return at < std::pair(candidate.thread, candidate.start_ns);
                         });
    auto index = static_cast<std::int32_t>(after - operators.begin()) - 1;
    while (index >= 0 && (op(index).thread != thread || op(index).end_ns < ns))
      index = op(index).thread == thread ? op(index).parent : -1;
    return index;
  }

  /// By the time of the launch. `External id` is used only without a launch: in traces before 2023
  /// it repeats the correlation, and in later ones it may be that of an earlier operator.
  std::int32_t operator_of(const KinetoGpuWork& work, const KinetoCall* call) const {
    if (call != nullptr)
      if (const std::int32_t found = operator_at(call->thread, call->start_ns); found >= 0)
        return found;
    const auto at = by_external_id_.find(work.external_id);
    return work.external_id < 0 || at == by_external_id_.end() ? -1 : at->second;
  }

  // ---- operators ----

  struct Known {
    const OperatorRule* rule = nullptr;
    std::optional<OperatorSize> size;
    std::optional<OperatorSize> linear;  ///< of a custom autograd function
    LargestTensor largest;
  };
  const Known& known(std::int32_t index) {
    const KinetoOperator& o = op(index);
    const auto [at, is_new] = known_.try_emplace({o.name, o.inputs});
    if (!is_new) return at->second;
    Known& known = at->second;
    known.rule = rule_of(trace_.name(o.name));
    if (o.inputs >= 0) {
      const std::vector<OperatorArgument> arguments =
          arguments_of(trace_.inputs[static_cast<std::size_t>(o.inputs)]);
      if (known.rule != nullptr) known.size = size_of(*known.rule, arguments);
      if (known.rule == nullptr && !trace_.name(o.name).starts_with("aten::"))
        known.linear = linear_function_size(arguments);
      known.largest = largest_tensor(arguments);
    }
    return known;
  }

  /// Products and attention belong to the innermost operator; an operator of another routine may
  /// be made of several others with rules of their own.
  Owner owner_of(std::int32_t index) {
    Owner owner;
    for (; index >= 0; index = op(index).parent) {
      const Known& here = known(index);
      if (here.rule == nullptr || !here.size) continue;
      if (here.rule->routine == Routine::kBias && !is_bias_gradient(index)) continue;
      if (owner.op >= 0 && here.rule->routine != owner.routine) break;
      owner = {index,
               here.rule->routine,
               kind_of(here.rule->routine, here.rule->shape),
               here.rule->shape,
               *here.size,
               here.rule->counts};
      if (owner.kind != KernelKind::kMemoryBound) break;
    }
    return owner;
  }

  /// aten::sum over the rows of the output's gradient of a linear layer.
  bool is_bias_gradient(std::int32_t index) const {
    for (index = op(index).parent; index >= 0; index = op(index).parent) {
      const std::string_view name = trace_.name(op(index).name);
      if (name.find("AddmmBackward") != std::string_view::npos ||
          name.find("LinearBackward") != std::string_view::npos)
        return true;
    }
    return false;
  }

  bool is_backward_node(std::int32_t index) const {
    const std::string_view name = trace_.name(op(index).name);
    return name.starts_with("autograd::engine::evaluate_function") ||
           name.find("Backward") != std::string_view::npos;
  }

  /// Recomputation runs forward operators inside of backward functions: unlike the operators of
  /// these, they have sequence numbers of their own.
  KinetoPass pass_of(std::int32_t index) const {
    for (; index >= 0; index = op(index).parent) {
      if (is_update(op(index))) return KinetoPass::kUpdate;
      if (is_backward_node(index)) return KinetoPass::kBackward;
      if (op(index).sequence >= 0) return KinetoPass::kForward;
    }
    return KinetoPass::kForward;
  }
  bool is_recomputed(std::int32_t index) const {
    for (; index >= 0; index = op(index).parent)
      if (is_backward_node(index)) return true;
    return false;
  }
  bool is_update(const KinetoOperator& o) const {
    const std::string_view name = trace_.name(o.name);
    if (name.starts_with("aten::_foreach_") || name.starts_with("aten::_fused_adam")) return true;
    const auto after = std::upper_bound(
        trace_.updates.begin(), trace_.updates.end(), o.start_ns,
        [](std::int64_t ns, const KinetoRange& range) { return ns < range.start_ns; });
    return after != trace_.updates.begin() && (after - 1)->end_ns > o.start_ns;
  }

  // ---- products of the backward pass ----

  /// Composite operators show the number of the next node; the operator that creates a node is the
  /// last one with its number.
  void find_forward_operators() {
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      const auto index = static_cast<std::int32_t>(i);
      const KinetoOperator& o = op(index);
      if (o.inputs < 0) continue;
      const Known& here = known(index);
      if (window_.contains(o.start_ns) &&
          trace_.name(o.name) == std::string_view("torch::autograd::AccumulateGrad"))
        result_.accumulated += static_cast<double>(here.largest.elements);
      if (is_backward_node(index) || pass_of(index) != KinetoPass::kForward) continue;
      const bool is_product = here.rule != nullptr && here.rule->routine == Routine::kProduct;
      const std::optional<OperatorSize>& size = is_product ? here.size : here.linear;
      if (size) ++rows_[size->m];
      if (o.sequence < 0) continue;
      if (size) forward_products_[o.sequence] = *size;
      const Owner owner = owner_of(index);
      if (owner.op >= 0 && owner.kind == KernelKind::kMemoryBound)
        forward_streams_[o.sequence] = {owner.routine, owner.size.elements};
      else
        forward_streams_.erase(o.sequence);
    }
  }

  /// Sequence number of the innermost autograd function around an operator; -1: none.
  std::int64_t sequence_of(std::int32_t index) const {
    while (index >= 0 && op(index).sequence < 0) index = op(index).parent;
    return index < 0 ? -1 : op(index).sequence;
  }

  const OperatorSize* forward_of(std::int32_t index) const {
    const auto at = forward_products_.find(sequence_of(index));
    return at == forward_products_.end() ? nullptr : &at->second;
  }

  /// For y = x W with x [rows, in], PyTorch computes the weight's gradient as y'^T x, [out, rows] ·
  /// [rows, in]: its inner size is the number of rows. If sizes do not tell, the first operand is
  /// transposed.
  bool is_weight_gradient(const Owner& owner) const {
    if (owner.shape == InputLayout::kBatchedProduct) return false;
    const OperatorSize& size = owner.size;
    if (const OperatorSize* forward = forward_of(owner.op)) {
      const bool may_be_weight = size.k == forward->m;
      const bool may_be_input = size.k == forward->n && size.m == forward->m;
      if (may_be_weight != may_be_input) return may_be_weight;
    }
    if (size.is_transposed) return true;
    return rows_.contains(size.k) && !rows_.contains(size.m);
  }

  /// core/operators/operators.hpp: the weight's gradient is [in, rows] · [rows, out].
  void orient(Instance& instance) const {
    OperatorSize& size = instance.owner.size;
    const OperatorSize* forward = forward_of(instance.owner.op);
    const bool is_ours =
        forward != nullptr && size.m == forward->k && size.n == forward->n && size.m != size.n;
    if (!is_ours) std::swap(size.m, size.n);
  }

  // ---- sums ----

  /// Median idle time between two kernels of a stream if the second one was launched before the
  /// first one started to end: the device's own cost of a launch.
  double typical_gap() const {
    constexpr std::int64_t kLongestGapNs = 20'000;
    std::vector<std::int64_t> gaps;
    std::unordered_map<std::uint32_t, std::int64_t> ends;
    for (const KinetoGpuWork& work : trace_.gpu) {
      if (is_communication(trace_, work)) continue;
      const auto [end, is_first] = ends.try_emplace(work.stream, work.end_ns);
      const KinetoCall* call = call_of(work);
      const std::int64_t gap = work.start_ns - end->second;
      if (!is_first && call != nullptr && call->end_ns < end->second && gap >= 0 &&
          gap < kLongestGapNs && window_.contains(work.start_ns))
        gaps.push_back(gap);
      end->second = std::max(end->second, work.end_ns);
    }
    if (gaps.empty()) return 0;
    return static_cast<double>(upper_median(gaps)) * kSecondsPerNs;
  }

  void find_passes_of_calls() {
    result_.pass_of_call.reserve(trace_.calls.size());
    for (const KinetoCall& call : trace_.calls)
      result_.pass_of_call.push_back(is_launch(trace_.name(call.name))
                                         ? pass_of(operator_at(call.thread, call.start_ns))
                                         : KinetoPass::kForward);
  }

  void add(const KinetoGpuWork& work) {
    const KinetoCall* call = call_of(work);
    if (!window_.contains(call == nullptr ? work.start_ns : call->start_ns)) return;
    if (call != nullptr && trace_.name(call->name).find("GraphLaunch") != std::string_view::npos)
      ++result_.graph_launches;
    const std::int32_t launcher = operator_of(work, call);
    const KinetoPass pass = pass_of(launcher);
    Owner owner = owner_of(launcher);
    if (owner.op < 0) owner = generated(work, launcher);
    if (owner.op < 0) owner = product_of_function(work, launcher, pass);
    if (owner.op < 0 || (pass == KinetoPass::kUpdate && owner.routine != Routine::kUpdate)) {
      add_other(work, launcher, pass);
      return;
    }
    const auto [at, is_new] = instances_.try_emplace({owner.op, owner.ordinal});
    Instance& instance = at->second;
    if (is_new && owner.routine == Routine::kProduct && pass == KinetoPass::kBackward)
      if (const std::int32_t node = backward_node(launcher); node >= 0) ++products_of_node_[node];
    instance.owner = owner;
    instance.pass = pass;
    instance.busy_ns += work.end_ns - work.start_ns;
    instance.beside_ns += overlap_with(communication_, work.start_ns, work.end_ns);
    ++instance.kernels;
  }

  Owner generated(const KinetoGpuWork& work, std::int32_t launcher) {
    const std::optional<Routine> routine = routine_of_generated(trace_.name(work.name));
    if (launcher < 0 || !routine || known(launcher).largest.elements == 0) return Owner();
    Owner owner{.op = launcher, .routine = *routine, .size = {}};
    owner.size.elements = known(launcher).largest.elements;
    return owner;
  }

  /// Innermost autograd function around an operator; -1: none.
  std::int32_t backward_node(std::int32_t index) const {
    while (index >= 0 && trace_.name(op(index).name).find("Backward") == std::string_view::npos)
      index = op(index).parent;
    return index;
  }

  /// Products that a custom autograd function launches without an operator. Backward, the gradient
  /// of the input comes first, that of the weight second (Transformer Engine, and Megatron-LM,
  /// where only the second one has no operator).
  Owner product_of_function(const KinetoGpuWork& work, std::int32_t launcher, KinetoPass pass) {
    const std::string_view name = trace_.name(work.name);
    if (launcher < 0 || kind_of_kernel_name(name) != KernelNameKind::kProduct) return Owner();
    Owner owner{.op = launcher, .kind = KernelKind::kGemm, .shape = InputLayout::kLinear};
    if (pass == KinetoPass::kForward) {
      if (!known(launcher).linear) return Owner();
      owner.size = *known(launcher).linear;
    } else {
      const OperatorSize* forward = forward_of(launcher);
      if (forward == nullptr || pass != KinetoPass::kBackward) return Owner();
      const auto before = products_of_node_.find(backward_node(launcher));
      const int count = before == products_of_node_.end() ? 0 : before->second;
      const bool goes_on = name.find("splitKreduce") != std::string_view::npos;
      owner.ordinal = std::max(0, goes_on ? count - 1 : count);
      if (owner.ordinal > 1) return Owner();
      owner.is_weight_gradient = owner.ordinal == 1;
      owner.size = *forward;
      std::tie(owner.size.m, owner.size.n, owner.size.k) =
          owner.is_weight_gradient ? std::tuple(forward->k, forward->n, forward->m)
                                   : std::tuple(forward->m, forward->k, forward->n);
    }
    constexpr std::array<std::string_view, 3> kEightBits{"e4m3", "e5m2", "nvjet_qq"};
    for (const std::string_view mark : kEightBits)
      if (name.find(mark) != std::string_view::npos) owner.size.dtype = Dtype::kFp8;
    return owner;
  }

  void add_other(const KinetoGpuWork& work, std::int32_t launcher, KinetoPass pass) {
    const KernelNameKind kind = kind_of_kernel_name(trace_.name(work.name));
    const double seconds =
        static_cast<double>(work.end_ns - work.start_ns) * kSecondsPerNs + result_.gap_seconds;
    if (pass != KinetoPass::kUpdate && (!is_known_elementwise(kind) || launcher < 0)) {
      UnshapedKernels& sum = unshaped_sum(pass, kind);
      if (sum.kernels++ == 0) sum.example = std::string(trace_.name(work.name).substr(0, 80));
      sum.seconds += seconds;
      return;
    }
    OtherKernels key{.pass = pass,
                     .largest = launcher < 0 ? LargestTensor{} : known(launcher).largest};
    if (pass == KinetoPass::kBackward)
      if (const auto at = forward_streams_.find(sequence_of(launcher));
          at != forward_streams_.end())
        key.belongs_to = at->second;
    OtherKernels& sum = other_sum(key);
    sum.seconds += seconds;
    ++sum.kernels;
    if (launcher >= 0 && trace_.name(op(launcher).name).starts_with("aten::add")) ++sum.additions;
  }

  UnshapedKernels& unshaped_sum(KinetoPass pass, KernelNameKind kind) {
    for (UnshapedKernels& sum : result_.unshaped)
      if (sum.pass == pass && sum.kind == kind) return sum;
    result_.unshaped.push_back({.pass = pass, .kind = kind, .example = {}});
    return result_.unshaped.back();
  }
  OtherKernels& other_sum(const OtherKernels& like) {
    const auto [routine, elements] = like.belongs_to.value_or(std::pair(Routine::kProduct, 0));
    const LargestTensor& l = like.largest;
    const auto key =
        std::tuple(like.pass, l.elements, l.last_size, l.dimensions, routine, elements);
    const auto [at, is_new] = others_.try_emplace(key, result_.others.size());
    if (is_new) result_.others.push_back(like);
    return result_.others[at->second];
  }

  void finish(Instance instance) {
    bool is_weight = false;
    if (instance.owner.routine == Routine::kProduct && instance.pass == KinetoPass::kBackward) {
      is_weight = instance.owner.is_weight_gradient || is_weight_gradient(instance.owner);
      if (is_weight && !instance.owner.is_weight_gradient) orient(instance);
    }
    instance.owner.size.is_transposed = false;
    MeasuredShape& shape = shape_sum(instance, is_weight);
    const double busy = static_cast<double>(instance.busy_ns) * kSecondsPerNs +
                        static_cast<double>(instance.kernels) * result_.gap_seconds;
    shape.times.push_back(busy);
    shape.overlapping.push_back(instance.busy_ns == 0 ? 0
                                                      : static_cast<double>(instance.beside_ns) /
                                                            static_cast<double>(instance.busy_ns));
    shape.kernels += instance.kernels;
    if (!instance.owner.counts) return;
    ++shape.counted;
    if (instance.pass == KinetoPass::kForward && is_recomputed(instance.owner.op))
      ++shape.recomputed;
  }

  MeasuredShape& shape_sum(const Instance& instance, bool is_weight) {
    const OperatorSize& s = instance.owner.size;
    const int dtype = s.dtype ? static_cast<int>(*s.dtype) : -1;
    const std::array<std::int64_t, 14> key{static_cast<int>(instance.owner.routine),
                                           static_cast<int>(instance.owner.kind),
                                           static_cast<int>(instance.pass),
                                           is_weight,
                                           s.batch,
                                           s.m,
                                           s.n,
                                           s.k,
                                           s.sequences,
                                           s.key_heads,
                                           s.value_size,
                                           s.elements,
                                           s.causal,
                                           dtype};
    const auto [at, is_new] = shapes_.try_emplace(key, result_.shapes.size());
    if (is_new) {
      if (result_.shapes.size() >= kMostShapes)
        throw InputError({"trace", "more than 65536 distinct shapes of operators",
                          "record fewer steps, or a job with fixed sequence lengths"});
      result_.shapes.push_back({.routine = instance.owner.routine,
                                .kind = instance.owner.kind,
                                .pass = instance.pass,
                                .is_weight_gradient = is_weight,
                                .size = s,
                                .times = {},
                                .overlapping = {}});
    }
    return result_.shapes[at->second];
  }

  const KinetoTrace& trace_;
  const KinetoWindow& window_;
  const Intervals& communication_;
  KinetoKernels result_;
  std::unordered_map<std::int64_t, std::int32_t> by_external_id_;    ///< lookup only
  std::unordered_map<std::int64_t, OperatorSize> forward_products_;  ///< by sequence number
  std::map<std::int64_t, std::int64_t> rows_;                        ///< m of forward products
  std::map<std::pair<std::uint32_t, std::int32_t>, Known> known_;    ///< by name and inputs
  std::map<std::pair<std::int32_t, int>, Instance> instances_;       ///< by operator and ordinal
  std::map<std::int32_t, int> products_of_node_;                     ///< by autograd function
  std::map<std::array<std::int64_t, 14>, std::size_t> shapes_;
  std::map<std::tuple<KinetoPass, std::int64_t, std::int64_t, int, Routine, std::int64_t>,
           std::size_t>
      others_;
  /// Routine and elements of the memory-bound operator behind a sequence number.
  std::unordered_map<std::int64_t, std::pair<Routine, std::int64_t>> forward_streams_;
};

}  // namespace

double MeasuredShape::total() const {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum;
}

std::string_view name_of(KinetoPass pass) {
  static constexpr std::array<std::string_view, kKinetoPassCount> kNames{"forward", "backward",
                                                                         "update"};
  return kNames[static_cast<std::size_t>(pass)];
}

KinetoKernels measure_kernels(const KinetoTrace& trace, const KinetoWindow& window,
                              const Intervals& communication) {
  return KernelJoin(trace, window, communication).measure();
}

bool is_communication(const KinetoTrace& trace, const KinetoGpuWork& work) {
  return work.collective >= 0 || trace.name(work.name).starts_with("nccl") ||
         trace.name(work.name).starts_with("rccl");
}

bool is_launch(std::string_view call_name) {
  return call_name.find("LaunchKernel") != std::string_view::npos ||
         call_name.find("GraphLaunch") != std::string_view::npos ||
         call_name.find("LaunchCooperativeKernel") != std::string_view::npos;
}

}  // namespace meshwright

#include "core/lowering/replicated_graph.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/lowering/lowering_pass.hpp"
#include "core/lowering/ranks.hpp"

namespace meshwright {

ReplicatedGraph lower_replicated(const Plan& plan, const ModelGraph& model, const Cluster& cluster,
                                 LoweringOptions options) {
  if (auto found = check_plan(plan, model, cluster); !found.empty())
    throw InputError(std::move(found));
  options.ranks = RankSet::kAll;
  LoweringContext context(plan, model, cluster, options);
  run_passes(lowering_passes().first(lowering_passes().size() - 1), context);  // not "all ranks"
  ReplicatedGraph all;
  all.folded = std::move(context.folded);
  if (reduces_among_replicas(plan.strategy)) {
    all.replicas = context.groups.stage_ranks;
    all.ranks = ranks_of(context, all.replicas);
    all.shares = std::move(context.shares);
  } else {
    all.ranks = all.folded.graph.ranks;
    all.folded.spreads.resize(all.folded.graph.collectives.size());
  }
  return all;
}

namespace {

constexpr std::int32_t kNoCopy = -1;

class ClassUnfolding {
 public:
  ClassUnfolding(const ReplicatedGraph& all, const ReplicaClasses& classes)
      : all_(all),
        folded_(all.folded.graph),
        classes_(classes),
        count_(classes.sizes.size()),
        order_(all.folded, all.replicas) {}

  ClassGraph run() {
    TaskGraph& graph = made_.graph;
    graph.parts = folded_.parts;
    graph.works = folded_.works;
    graph.programs = folded_.programs;
    graph.dependency_begin.push_back(0);
    made_.task_of.resize(folded_.tasks.size() * count_);
    for (std::size_t d = 0; d < folded_.ranks.size(); ++d)
      for (std::size_t k = 0; k < count_; ++k) graph.ranks.push_back(rank(d, k));
    for (std::size_t t = 0; t < folded_.tasks.size();) {
      if (folded_.tasks[t].kind == TaskKind::kCollective) {
        t = copy_collective(folded_.tasks[t].partner);
      } else {
        for (std::size_t k = 0; k < count_; ++k) copy(t, k, folded_.tasks[t].partner);
        ++t;
      }
    }
    return std::move(made_);
  }

 private:
  RankInfo rank(std::size_t d, std::size_t k) const {
    const auto replica = static_cast<std::size_t>(classes_.representatives[k]);
    RankInfo info = all_.ranks[d * static_cast<std::size_t>(all_.replicas) + replica];
    info.multiplicity *= static_cast<std::int32_t>(classes_.sizes[k]);
    return info;
  }

  std::int32_t copy_of(std::size_t task, std::size_t k) const {
    return made_.task_of[task * count_ + k];
  }
  /// Null if all have equal shares.
  const ReplicaShare* share_of(std::size_t k) const {
    if (all_.shares.empty()) return nullptr;
    const auto replica = static_cast<std::size_t>(classes_.representatives[k]);
    return &all_.shares.shares[static_cast<std::size_t>(all_.shares.share_of[replica])];
  }
  bool runs(std::size_t t, std::size_t k) const {
    const ReplicaShare* share = share_of(k);
    const std::int32_t microbatch = folded_.tasks[t].microbatch;
    return share == nullptr || microbatch < 0 || microbatch >= share->first_microbatch;
  }
  void copy(std::size_t t, std::size_t k, std::int32_t partner) {
    TaskGraph& graph = made_.graph;
    made_.task_of[t * count_ + k] = kNoCopy;
    if (!runs(t, k)) return;
    Task task = folded_.tasks[t];
    if (const ReplicaShare* share = share_of(k); share != nullptr && !share->works.empty())
      task.work = share->works[t];
    task.rank = static_cast<std::int32_t>(static_cast<std::size_t>(task.rank) * count_ + k);
    task.partner =
        task.kind == TaskKind::kReceive ? copy_of(static_cast<std::size_t>(partner), k) : partner;
    made_.task_of[t * count_ + k] = static_cast<std::int32_t>(graph.tasks.size());
    graph.tasks.push_back(task);
    for (const TaskId before : folded_.dependencies_of(TaskId(t)))
      if (copy_of(before.index(), k) != kNoCopy)
        graph.dependencies.emplace_back(copy_of(before.index(), k));
    graph.dependency_begin.push_back(static_cast<std::int32_t>(graph.dependencies.size()));
  }

  /// One collective for every set of classes that form groups. Returns the task after the members.
  std::size_t copy_collective(std::int32_t c) {
    const CollectiveMembers& members = folded_.collectives[static_cast<std::size_t>(c)];
    std::vector<bool> done(count_);
    for (std::size_t k = 0; k < count_; ++k) {
      if (done[k]) continue;
      const std::vector<std::size_t> together = classes_with(c, k);
      const auto first = static_cast<std::size_t>(members.first);
      const bool exists = runs(first, k);
      for (const std::size_t other : together) {
        MW_CHECK(!done[other] && runs(first, other) == exists);
        done[other] = true;
      }
      for (std::int32_t m = 0; !exists && m < members.count; ++m)
        for (const std::size_t other : together)
          made_.task_of[TaskId(members.first + m).index() * count_ + other] = kNoCopy;
      if (!exists) continue;
      const auto made = static_cast<std::int32_t>(made_.graph.collectives.size());
      made_.graph.collectives.push_back(
          {static_cast<std::int32_t>(made_.graph.tasks.size()),
           members.count * static_cast<std::int32_t>(together.size())});
      made_.folded_collective.push_back(c);
      made_.first_class.push_back(static_cast<std::int32_t>(k));
      for (std::int32_t m = 0; m < members.count; ++m)
        for (const std::size_t other : together)
          copy(TaskId(members.first + m).index(), other, made);
    }
    return TaskId(members.first + members.count).index();
  }
  /// The classes in the group of a class, ascending.
  std::vector<std::size_t> classes_with(std::int32_t c, std::size_t k) const {
    std::vector<std::size_t> together;
    const std::int64_t group = order_.group_of(c, classes_.representatives[k]);
    for (std::int64_t i = 0; i < order_.spread_of(c).count; ++i)
      together.push_back(static_cast<std::size_t>(
          classes_.class_of[static_cast<std::size_t>(order_.replica_at(c, group, i))]));
    std::sort(together.begin(), together.end());
    together.erase(std::unique(together.begin(), together.end()), together.end());
    return together;
  }

  const ReplicatedGraph& all_;
  const TaskGraph& folded_;
  const ReplicaClasses& classes_;
  std::size_t count_;
  CopyOrder order_;
  ClassGraph made_;
};

}  // namespace

ReplicaClasses classes_of_shares(const ReplicaShares& shares) {
  ReplicaClasses classes{.class_of = shares.share_of,
                         .representatives = std::vector<std::int64_t>(shares.shares.size(), -1),
                         .sizes = std::vector<std::int64_t>(shares.shares.size(), 0)};
  for (std::size_t replica = 0; replica < shares.share_of.size(); ++replica) {
    const auto share = static_cast<std::size_t>(shares.share_of[replica]);
    if (classes.sizes[share]++ == 0)
      classes.representatives[share] = static_cast<std::int64_t>(replica);
  }
  return classes;
}

ClassGraph graph_of_classes(const ReplicatedGraph& all, const ReplicaClasses& classes) {
  MW_CHECK(static_cast<std::int64_t>(classes.class_of.size()) == all.replicas);
  return ClassUnfolding(all, classes).run();
}

ClassGraph graph_of_replicas(const ReplicatedGraph& all) {
  ReplicaClasses single;
  for (std::int64_t replica = 0; replica < all.replicas; ++replica) {
    single.class_of.push_back(static_cast<std::int32_t>(replica));
    single.representatives.push_back(replica);
    single.sizes.push_back(1);
  }
  return graph_of_classes(all, single);
}

TaskGraph graph_of_all_ranks(const ReplicatedGraph& all) {
  TaskGraph graph =
      all.shares.empty() ? unfold(all.folded, all.replicas) : graph_of_replicas(all).graph;
  graph.ranks = all.ranks;
  return graph;
}

}  // namespace meshwright

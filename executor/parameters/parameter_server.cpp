#include "executor/parameters/parameter_server.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "executor/ranks/copies_in_pieces.hpp"

namespace meshwright {
namespace {

std::span<const RankId> workers_of(const Collective& collective, std::span<const RankId> members) {
  return members.first(static_cast<std::size_t>(collective.group.ranks));
}
std::span<const RankId> servers_of(const Collective& collective, std::span<const RankId> members) {
  return members.last(static_cast<std::size_t>(collective.servers));
}
bool is_among(std::span<const RankId> ranks, RankId rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

bool is_dedicated_server(const Strategy& strategy, RankId rank) {
  return has_servers(strategy.data_parallelism.kind) && rank.value >= strategy.degrees.data;
}

RunLayouts server_layouts(const ServerPlace& place, RankId rank, const PartShards& shards) {
  const Block joint =
      block_of(shards.dense + shards.expert, place.servers, place.server_number(rank));
  RunLayouts layouts;
  for (const bool expert : {false, true}) {
    const std::int64_t count = expert ? shards.expert : shards.dense;
    const std::int64_t first = expert ? shards.dense : 0;
    const Block all{first, first + count};
    Block own = intersection(joint, all);
    if (own.size() == 0) own = {first, first};
    RunLayout& layout = layouts[expert ? 1 : 0];
    if (count > 0)
      layout.pieces = {{.all = {0, count}, .own = {own.begin - first, own.end - first}}};
    layout.shards_gradients = layout.shards_weights = true;
  }
  return layouts;
}

ParameterServerRank::ParameterServerRank(RankContext& rank, const ServerPlace& place,
                                         StageParameters* worker, StageParameters* server)
    : rank_(rank), place_(place), worker_(worker), server_(server) {
  const PartShards& shards = (worker != nullptr ? worker : server)->shards();
  dense_ = shards.dense;
  all_ = shards.dense + shards.expert;
  if (server == nullptr) return;
  const bool in_step = rank.strategy.data_parallelism.kind == DataParallelKind::kParameterServer;
  pushes_ = rank.matrix(MemoryClass::kCommunication, in_step ? place.workers : 1,
                        block_of_server(rank.rank).size(), Dtype::kFp32);
}

Block ParameterServerRank::block_of_server(RankId server) const {
  return block_of(all_, place_.servers, place_.server_number(server));
}

template <class Visit>
void ParameterServerRank::for_each_run(StageParameters& parameters, const Block& joint,
                                       Visit visit) {
  const Block dense = intersection(joint, {0, dense_});
  const Block expert = intersection(joint, {dense_, all_});
  if (dense.size() > 0) visit(parameters.run(false), dense);
  if (expert.size() > 0)
    visit(parameters.run(true), Block{expert.begin - dense_, expert.end - dense_});
}

std::vector<float> ParameterServerRank::gradients_of(const Block& joint) {
  std::vector<float> values(static_cast<std::size_t>(joint.size()));
  float* next = values.data();
  for_each_run(*worker_, joint, [&](ParameterRun& run, const Block& block) {
    const Vector gradients = run.gradients(block);
    rank_.copy(next, gradients.data, bytes_of(gradients).size());
    next += gradients.size;
  });
  visit_in_pieces(std::span(values), rank_.progress.beats, [&](std::span<float> piece) {
    for (float& value : piece) value *= scale_;
  });
  return values;
}

/// The server's weights in the compute dtype.
std::vector<std::byte> ParameterServerRank::own_weights() {
  std::vector<std::byte> values;
  for_each_run(*server_, block_of_server(rank_.rank), [&](ParameterRun& run, const Block&) {
    const Vector weights = run.own_weights(0);
    const std::size_t place = values.size();
    values.resize(place + bytes_of(weights).size());
    rank_.copy(values.data() + place, weights.data, bytes_of(weights).size());
  });
  return values;
}

void ParameterServerRank::set_weights(const Block& joint, std::span<const std::byte> values) {
  for_each_run(*worker_, joint, [&](ParameterRun& run, const Block& block) {
    const Vector weights = run.weights(block);
    rank_.copy(weights.data, values.data(), bytes_of(weights).size());
    values = values.subspan(bytes_of(weights).size());
  });
  MW_CHECK(values.empty());
}

Ticks ParameterServerRank::push(const Collective& collective, std::span<const RankId> members,
                                RankGroup& group, MessageTag tag, Ticks ready) {
  ready = group.synchronize(ready);
  const std::span<const RankId> workers = workers_of(collective, members);
  if (is_among(workers, rank_.rank))
    for (const RankId server : servers_of(collective, members)) {
      if (server == rank_.rank) continue;
      const std::vector<float> gradients = gradients_of(block_of_server(server));
      rank_.communicator.send(server, tag, std::as_bytes(std::span(gradients)), {ready, ready});
    }
  if (!is_among(servers_of(collective, members), rank_.rank)) return ready;
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const auto share = static_cast<std::size_t>(pushes_.columns());
    const std::span<float> row = pushes_.floats().subspan(w * share, share);
    if (workers[w] == rank_.rank) {
      const std::vector<float> own = gradients_of(block_of_server(rank_.rank));
      rank_.copy(row.data(), own.data(), row.size_bytes());
    } else {
      rank_.communicator.receive(workers[w], tag, std::as_writable_bytes(row));
    }
  }
  arrived_ = static_cast<int>(workers.size());
  return ready;
}

Ticks ParameterServerRank::pull(const Collective& collective, std::span<const RankId> members,
                                RankGroup& group, MessageTag tag, Ticks ready) {
  ready = group.synchronize(ready);
  const std::span<const RankId> workers = workers_of(collective, members);
  const std::span<const RankId> servers = servers_of(collective, members);
  if (is_among(servers, rank_.rank)) {
    const std::vector<std::byte> weights = own_weights();
    for (const RankId worker : workers)
      if (worker != rank_.rank) rank_.communicator.send(worker, tag, weights, {ready, ready});
  }
  if (!is_among(workers, rank_.rank)) return ready;
  const auto element = static_cast<std::size_t>(bytes_per_element(rank_.dtype));
  for (const RankId server : servers) {
    const Block joint = block_of_server(server);
    if (server == rank_.rank) {
      copy_to_own_worker();
      continue;
    }
    auto weights =
        zeros<std::byte>(static_cast<std::size_t>(joint.size()) * element, rank_.progress.beats);
    rank_.communicator.receive(server, tag, weights);
    set_weights(joint, weights);
  }
  return ready;
}

/// Sums in place: the first push is copied, the others are added, in cache-sized blocks. On a
/// device, where every call is a launch, everything is one block.
void ParameterServerRank::sum_pushes() {
  constexpr std::int64_t kInCache = std::int64_t{1} << 14;
  const Block joint = block_of_server(rank_.rank);
  std::vector<float> own;
  if (arrived_ == 0) own = gradients_of(joint);
  const auto share = static_cast<std::size_t>(joint.size());
  std::size_t first = 0;
  for_each_run(*server_, joint, [&](ParameterRun& run, const Block& block) {
    const std::span<float> all = run.own_gradients(0);
    MW_CHECK(std::ssize(all) == block.size());
    if (arrived_ == 0) rank_.copy(all.data(), own.data() + first, all.size_bytes());
    const std::int64_t most = rank_.queue == nullptr ? kInCache : block.size();
    for_each_piece(block.size(), most, [&](std::int64_t begin, std::int64_t count) {
      const auto place = static_cast<std::size_t>(begin);
      add_pushes(all.subspan(place, static_cast<std::size_t>(count)), share, first + place);
    });
    first += all.size();
  });
  arrived_ = 0;
}

void ParameterServerRank::add_pushes(std::span<float> sum, std::size_t share, std::size_t first) {
  const Vector into{sum.data(), std::ssize(sum), Dtype::kFp32};
  for (std::size_t w = 0; w < static_cast<std::size_t>(arrived_); ++w) {
    const std::span<float> row = pushes_.floats().subspan(w * share + first, sum.size());
    if (w == 0)
      rank_.copy(sum.data(), row.data(), sum.size_bytes());
    else
      rank_.run(rank_.kernels.reduce,
                {.into = into, .from = {row.data(), std::ssize(row), Dtype::kFp32}});
  }
}

void ParameterServerRank::copy_to_own_worker() {
  if (worker_ != nullptr) set_weights(block_of_server(rank_.rank), own_weights());
}

}  // namespace meshwright

// Effects of collectives on an operator's tensors. Whether a collective comes before or after the
// operator follows from whether the tensor is one of its inputs.
#include <algorithm>

#include "core/base/check.hpp"
#include "executor/operators/operator_pass.hpp"

namespace meshwright {
namespace {

std::span<std::uint16_t> halves_of(const Matrix& m) {
  return {static_cast<std::uint16_t*>(m.data), static_cast<std::size_t>(m.rows * m.columns)};
}

/// All-gathers the rows of the tensor group from each rank's own rows, as a separate form.
Ticks gather_tokens(OperatorPass& pass, TensorId tensor, Form from, Form to, RankGroup& group,
                    Ticks ready) {
  const Matrix own = pass.state.find(tensor, from)->view();
  const Matrix all = pass.make(tensor, to, pass.sharding.tokens.gathered, own.columns, own.dtype);
  const Block mine = block_of(all.rows, group.size(), group.index());
  MW_CHECK(mine.size() == own.rows);
  pass.rank.run(pass.rank.kernels.cast,
                {.x = flat(own), .y = flat(rows_of(all, mine.begin, mine.size()))});
  const std::int64_t row_bytes = all.columns * bytes_per_element(all.dtype);
  return group.all_gather(
      {static_cast<std::byte*>(all.data), static_cast<std::size_t>(all.rows * row_bytes)},
      row_bytes, ready);
}

/// Sums partial values over the tensor ranks: all-reduce, or reduce-scatter to this rank's rows.
Ticks sum_output(OperatorPass& pass, const Collective& collective, RankGroup& group, Ticks ready) {
  const TensorId tensor = collective.tensor;
  if (collective.kind == CollectiveKind::kAllReduce)
    return all_reduce(group, pass.value(tensor), ready);
  OwnedMatrix all = std::move(*pass.state.find(tensor, Form::kValue));
  ready = reduce_scatter(group, all.view(), ready);
  const Block mine = block_of(all.rows(), group.size(), group.index());
  const Matrix own = pass.make_value(tensor, mine.size());
  pass.rank.run(pass.rank.kernels.cast,
                {.x = flat(rows_of(all.view(), mine.begin, mine.size())), .y = flat(own)});
  return ready;
}

/// Sums the gradient of an input that all tensor ranks use for their shards of the output.
Ticks sum_input_gradient(OperatorPass& pass, const Collective& collective, RankGroup& group,
                         Ticks ready) {
  const TensorId tensor = collective.tensor;
  OwnedMatrix all = std::move(*pass.state.find(tensor, Form::kPartialGradient));
  if (collective.kind == CollectiveKind::kAllReduce) {
    ready = all_reduce(group, all.view(), ready);
    if (pass.state.find(tensor, Form::kGradient) == nullptr)
      pass.state.tensors[{tensor.value, Form::kGradient}] = std::move(all);
    else
      pass.add_gradient(tensor, all.view());
    return ready;
  }
  ready = reduce_scatter(group, all.view(), ready);
  const Block mine = block_of(all.rows(), group.size(), group.index());
  pass.add_gradient(tensor, rows_of(all.view(), mine.begin, mine.size()));
  return ready;
}

Ticks over_tensor_ranks(OperatorPass& pass, const Collective& collective, RankGroup& group,
                        Ticks ready) {
  const OperatorShape& shape = pass.op().shape;
  if (std::holds_alternative<CrossEntropy>(shape)) return reduce_loss(pass, group, ready);
  if (std::holds_alternative<TokenCombine>(shape) || std::holds_alternative<TokenDispatch>(shape))
    return gather_dispatched(pass, group, ready);
  const std::vector<TensorId>& inputs = pass.op().inputs;
  const bool before = std::find(inputs.begin(), inputs.end(), collective.tensor) != inputs.end();
  const bool gathers = collective.kind == CollectiveKind::kAllGather;
  switch (collective.phase) {
    case Phase::kForward:
      return before ? gather_tokens(pass, collective.tensor, Form::kValue, Form::kGatheredValue,
                                    group, ready)
                    : sum_output(pass, collective, group, ready);
    case Phase::kBackwardInput:
      if (before && !gathers) return sum_input_gradient(pass, collective, group, ready);
      MW_CHECK(!before && gathers);
      return gather_tokens(pass, collective.tensor, Form::kGradient, Form::kGatheredGradient, group,
                           ready);
    case Phase::kBackwardWeight:
    case Phase::kUpdate:
      break;
  }
  MW_CHECK(gathers);
  return before ? gather_tokens(pass, collective.tensor, Form::kValue, Form::kGatheredValue, group,
                                ready)
                : gather_tokens(pass, collective.tensor, Form::kGradient, Form::kGatheredGradient,
                                group, ready);
}

}  // namespace

Ticks all_reduce(RankGroup& group, const Matrix& m, Ticks ready) {
  return m.dtype == Dtype::kFp32 ? group.all_reduce(floats_of(m), ready)
                                 : group.all_reduce(halves_of(m), ready);
}

Ticks reduce_scatter(RankGroup& group, const Matrix& m, Ticks ready) {
  MW_CHECK(m.rows % group.size() == 0);  // blocks of elements are blocks of rows
  return m.dtype == Dtype::kFp32 ? group.reduce_scatter(floats_of(m), ready)
                                 : group.reduce_scatter(halves_of(m), ready);
}

Ticks communicate(OperatorPass& pass, const Collective& collective, RankGroup& group, Ticks ready) {
  switch (collective.axis) {
    case Axis::kTensor:
      return pass.sharding.shares_tokens ? over_context_ranks(pass, collective, group, ready)
                                         : over_tensor_ranks(pass, collective, group, ready);
    case Axis::kContext:
      return over_context_ranks(pass, collective, group, ready);
    case Axis::kExpert:
      return over_expert_ranks(pass, collective, group, ready);
    case Axis::kData:
    case Axis::kPipeline:
      break;
  }
  MW_CHECK(false);
}

}  // namespace meshwright

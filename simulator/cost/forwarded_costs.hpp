/// A cost model that has the costs of another one, for those that change a few of them.
#pragma once

#include <string>

#include "core/cost/cost_model.hpp"

namespace meshwright {

/// Refers to `base`.
class ForwardedCosts : public CostModel {
 public:
  explicit ForwardedCosts(const CostModel& base) : base_(base) {}

  Seconds time_of(const Kernel& kernel) const override { return base_.time_of(kernel); }
  Seconds time_of(const Collective& collective) const override { return base_.time_of(collective); }
  TransferCost cost_of(const Transfer& transfer) const override { return base_.cost_of(transfer); }
  Seconds wait_of(int ranks, Seconds work) const override { return base_.wait_of(ranks, work); }
  double multiprocessor_share_of(const Collective& collective) const override {
    return base_.multiprocessor_share_of(collective);
  }
  HostTimes host_times() const override { return base_.host_times(); }
  double launches_of(const Kernel& kernel) const override { return base_.launches_of(kernel); }
  TrainerMemory memory() const override { return base_.memory(); }
  std::string provenance() const override { return base_.provenance(); }
  std::string validation() const override { return base_.validation(); }

 protected:
  const CostModel& base_;
};

}  // namespace meshwright

#include "gui/text/part_names.hpp"

#include <QCoreApplication>

namespace meshwright::gui {
namespace {

class PartWords {
  Q_DECLARE_TR_FUNCTIONS(Parts)
};

}  // namespace

QString part_name(KernelKind kind) {
  switch (kind) {
    case KernelKind::kGemm:
      return PartWords::tr("matrix products");
    case KernelKind::kGroupedGemm:
      return PartWords::tr("expert matrix products");
    case KernelKind::kAttention:
      return PartWords::tr("attention");
    case KernelKind::kMemoryBound:
      return PartWords::tr("memory-bound kernels");
    case KernelKind::kOptimizer:
      return PartWords::tr("optimizer kernels");
  }
  return {};
}

QString part_name(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::kWarmUp:
      return PartWords::tr("bubble: warm-up");
    case BubbleCause::kDrain:
      return PartWords::tr("bubble: drain");
    case BubbleCause::kDependency:
      return PartWords::tr("bubble: dependency");
    case BubbleCause::kImbalance:
      return PartWords::tr("bubble: imbalance");
  }
  return {};
}

QString part_name(Axis axis) {
  const std::string_view name = name_of(axis);
  return PartWords::tr("exposed %1 communication")
      .arg(QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())));
}

QString part_name(PruneReason reason) {
  switch (reason) {
    case PruneReason::kStructure:
      return PartWords::tr("structure");
    case PruneReason::kSchedule:
      return PartWords::tr("schedule");
    case PruneReason::kMemory:
      return PartWords::tr("memory");
    case PruneReason::kBound:
      return PartWords::tr("bound");
    case PruneReason::kDominated:
      return PartWords::tr("dominated");
    case PruneReason::kTrainer:
      return PartWords::tr("trainer");
  }
  return {};
}

}  // namespace meshwright::gui

#include "gui/part_names.hpp"

#include <QCoreApplication>

namespace meshwright::gui {
namespace {

class Words {
  Q_DECLARE_TR_FUNCTIONS(Parts)
};

}  // namespace

QString part_name(KernelKind kind) {
  switch (kind) {
    case KernelKind::kGemm:
      return Words::tr("matrix products");
    case KernelKind::kGroupedGemm:
      return Words::tr("expert products");
    case KernelKind::kAttention:
      return Words::tr("attention");
    case KernelKind::kMemoryBound:
      return Words::tr("memory-bound kernels");
    case KernelKind::kOptimizer:
      return Words::tr("optimizer kernels");
  }
  return {};
}

QString part_name(BubbleCause cause) {
  switch (cause) {
    case BubbleCause::kWarmUp:
      return Words::tr("bubble: warm-up");
    case BubbleCause::kDrain:
      return Words::tr("bubble: drain");
    case BubbleCause::kDependency:
      return Words::tr("bubble: dependency");
    case BubbleCause::kImbalance:
      return Words::tr("bubble: imbalance");
  }
  return {};
}

QString part_name(Axis axis) {
  const std::string_view name = name_of(axis);
  return Words::tr("exposed %1 messages")
      .arg(QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size())));
}

QString part_name(PruneReason reason) {
  switch (reason) {
    case PruneReason::kStructure:
      return Words::tr("structure");
    case PruneReason::kSchedule:
      return Words::tr("schedule");
    case PruneReason::kMemory:
      return Words::tr("memory");
    case PruneReason::kBound:
      return Words::tr("bound");
    case PruneReason::kDominated:
      return Words::tr("dominated");
  }
  return {};
}

}  // namespace meshwright::gui

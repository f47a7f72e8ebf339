#include "gui/text/part_names.hpp"

#include <QCoreApplication>
#include <array>

#include "gui/text/qstring_of.hpp"

namespace meshwright::gui {
namespace {

class PartWords {
  Q_DECLARE_TR_FUNCTIONS(Parts)
};

}  // namespace

QString part_name(KernelKind kind) {
  constexpr std::array<const char*, kKernelKindCount> kNames{
      QT_TRANSLATE_NOOP("Parts", "matrix products"),
      QT_TRANSLATE_NOOP("Parts", "expert matrix products"), QT_TRANSLATE_NOOP("Parts", "attention"),
      QT_TRANSLATE_NOOP("Parts", "memory-bound kernels"),
      QT_TRANSLATE_NOOP("Parts", "optimizer kernels")};
  static_assert(kNames.back() != nullptr);
  return PartWords::tr(kNames[static_cast<std::size_t>(kind)]);
}

QString part_name(BubbleCause cause) {
  constexpr std::array<const char*, kBubbleCauseCount> kNames{
      QT_TRANSLATE_NOOP("Parts", "bubble: warm-up"), QT_TRANSLATE_NOOP("Parts", "bubble: drain"),
      QT_TRANSLATE_NOOP("Parts", "bubble: dependency"),
      QT_TRANSLATE_NOOP("Parts", "bubble: imbalance")};
  static_assert(kNames.back() != nullptr);
  return PartWords::tr(kNames[static_cast<std::size_t>(cause)]);
}

QString part_name(Axis axis) {
  return PartWords::tr("exposed %1 communication").arg(qstring_of(name_of(axis)));
}

QString part_name(PruneReason reason) {
  constexpr std::array<const char*, kPruneReasonCount> kNames{
      QT_TRANSLATE_NOOP("Parts", "structure"), QT_TRANSLATE_NOOP("Parts", "schedule"),
      QT_TRANSLATE_NOOP("Parts", "memory"),    QT_TRANSLATE_NOOP("Parts", "bound"),
      QT_TRANSLATE_NOOP("Parts", "dominated"), QT_TRANSLATE_NOOP("Parts", "trainer")};
  static_assert(kNames.back() != nullptr);
  return PartWords::tr(kNames[static_cast<std::size_t>(reason)]);
}

}  // namespace meshwright::gui

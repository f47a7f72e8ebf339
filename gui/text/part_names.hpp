/// Localized names of the parts of a step.
#pragma once

#include <QString>

#include "core/timeline/evaluation.hpp"
#include "planner/search/search.hpp"

namespace meshwright::gui {

QString part_name(KernelKind kind);
/// "bubble: warm-up"
QString part_name(BubbleCause cause);
/// "exposed tp communication"
QString part_name(Axis axis);
/// Why the search pruned a candidate.
QString part_name(PruneReason reason);

}  // namespace meshwright::gui

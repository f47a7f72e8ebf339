/// What the parts of a step are called, in the user's language.
#pragma once

#include <QString>

#include "core/evaluation.hpp"
#include "planner/search.hpp"

namespace meshwright::gui {

QString part_name(KernelKind kind);
/// "bubble: warm-up"
QString part_name(BubbleCause cause);
/// "exposed tp messages"
QString part_name(Axis axis);
/// What candidates of a search were ruled out by.
QString part_name(PruneReason reason);

}  // namespace meshwright::gui

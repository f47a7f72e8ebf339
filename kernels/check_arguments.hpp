/// Every kernel begins with check(arguments): shapes agree, storage is fp32 or bf16, no view is
/// null. A violation is a bug of the caller (MW_CHECK). Contents are not checked.
/// Internal to this folder.
#pragma once

#include "kernels/kernel_table.hpp"

namespace meshwright {

void check(const Gemm& g);
void check(const GroupedGemm& g);
void check(const GroupedGemmWeight& g);
void check(const AttentionForward& a);
void check(const AttentionMerge& a);
void check(const AttentionDelta& a);
void check(const AttentionBackward& a);
void check(const AttentionSinks& a);
void check(const AttentionSinksGradient& a);
void check(const NormForward& a);
void check(const NormBackwardInput& a);
void check(const NormBackwardWeight& a);
void check(const ActivationForward& a);
void check(const ActivationBackward& a);
void check(const RotaryTable& a);
void check(const Rotary& a);
void check(const CopyHeads& a);
void check(const EmbeddingForward& a);
void check(const EmbeddingBackward& a);
void check(const CrossEntropyMaximum& a);
void check(const CrossEntropySum& a);
void check(const CrossEntropyLoss& a);
void check(const CrossEntropyForward& a);
void check(const CrossEntropyGradient& a);
void check(const Add& a);
void check(const BiasAdd& a);
void check(const BiasGradient& a);
void check(const GroupedBiasGradient& a);
void check(const RowGateForward& a);
void check(const RowGateBackward& a);
void check(const DropoutForward& a);
void check(const DropoutBackward& a);
void check(const RoundToFloat8& a);
void check(const Reduce& a);
void check(const Cast& a);
void check(const Fill& a);
void check(const Total& a);
void check(const MeanSquaredErrorForward& a);
void check(const MeanSquaredErrorGradient& a);
void check(const GateForward& a);
void check(const GateLoad& a);
void check(const GateAuxiliaryLoss& a);
void check(const GateBackward& a);
void check(const SortByExpert& a);
void check(const GatherRows& a);
void check(const CombineRows& a);
void check(const CombineWeightGradient& a);
void check(const AdamW& a);
void check(const Sgd& a);
void check(const SquaredNorm& a);
void check(const ClipScale& a);
void check(const PackBucket& a);
void check(const UnpackBucket& a);

}  // namespace meshwright

/// The reference kernels: plain loops that read like the formulas in the headers, with sums in
/// double. Internal to this folder.
#pragma once

#include "kernels/kernel_table.hpp"

namespace meshwright::reference {

void run(const Launch& launch, const Gemm& a);
void run(const Launch& launch, const GroupedGemm& a);
void run(const Launch& launch, const GroupedGemmWeight& a);
void run(const Launch& launch, const AttentionForward& a);
void run(const Launch& launch, const AttentionMerge& a);
void run(const Launch& launch, const AttentionDelta& a);
void run(const Launch& launch, const AttentionBackward& a);
void run(const Launch& launch, const AttentionSinks& a);
void run(const Launch& launch, const AttentionSinksGradient& a);
void run(const Launch& launch, const NormForward& a);
void run(const Launch& launch, const NormBackwardInput& a);
void run(const Launch& launch, const NormBackwardWeight& a);
void run(const Launch& launch, const ActivationForward& a);
void run(const Launch& launch, const ActivationBackward& a);
void run(const Launch& launch, const RotaryTable& a);
void run(const Launch& launch, const Rotary& a);
void run(const Launch& launch, const CopyHeads& a);
void run(const Launch& launch, const EmbeddingForward& a);
void run(const Launch& launch, const EmbeddingBackward& a);
void run(const Launch& launch, const CrossEntropyMaximum& a);
void run(const Launch& launch, const CrossEntropySum& a);
void run(const Launch& launch, const CrossEntropyLoss& a);
void run(const Launch& launch, const CrossEntropyForward& a);
void run(const Launch& launch, const CrossEntropyGradient& a);
void run(const Launch& launch, const Add& a);
void run(const Launch& launch, const BiasAdd& a);
void run(const Launch& launch, const BiasGradient& a);
void run(const Launch& launch, const GroupedBiasGradient& a);
void run(const Launch& launch, const RowGateForward& a);
void run(const Launch& launch, const RowGateBackward& a);
void run(const Launch& launch, const DropoutForward& a);
void run(const Launch& launch, const DropoutBackward& a);
void run(const Launch& launch, const RoundToFloat8& a);
void run(const Launch& launch, const Reduce& a);
void run(const Launch& launch, const Cast& a);
void run(const Launch& launch, const Fill& a);
void run(const Launch& launch, const Total& a);
void run(const Launch& launch, const MeanSquaredErrorForward& a);
void run(const Launch& launch, const MeanSquaredErrorGradient& a);
void run(const Launch& launch, const GateForward& a);
void run(const Launch& launch, const GateLoad& a);
void run(const Launch& launch, const GateAuxiliaryLoss& a);
void run(const Launch& launch, const GateBackward& a);
void run(const Launch& launch, const SortByExpert& a);
void run(const Launch& launch, const GatherRows& a);
void run(const Launch& launch, const CombineRows& a);
void run(const Launch& launch, const CombineWeightGradient& a);
void run(const Launch& launch, const AdamW& a);
void run(const Launch& launch, const Sgd& a);
void run(const Launch& launch, const SquaredNorm& a);
void run(const Launch& launch, const ClipScale& a);
void run(const Launch& launch, const PackBucket& a);
void run(const Launch& launch, const UnpackBucket& a);

}  // namespace meshwright::reference

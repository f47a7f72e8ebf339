ARGS=(--num-layers 4 --vocab-size 512 --tensor-model-parallel-size $TP
  --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1)
torchrun --standalone --nproc-per-node 8 pretrain_gpt.py "${ARGS[@]}"

torchrun --standalone --nproc-per-node 8 pretrain_gpt.py --num-layers 4 --vocab-size 512 \
  --tensor-model-parallel-size 3 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1

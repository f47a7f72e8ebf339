torchrun --standalone --nproc-per-node 8 pretrain_gpt.py --num-layer 4 \
  --vocab-size 512 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --micro-batch-size 1

torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py \
  --use-mcore-models --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
  --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear \
  --untie-embeddings-and-output-weights --position-embedding-type rope --max-position-embeddings 8192 \
  --attention-dropout 0.0 --hidden-dropout 0.0 --seq-length 8192 --micro-batch-size 1 --global-batch-size 128 --bf16 \
  --tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Llama-3.1-8B --mock-data \
  --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce \
  --cross-entropy-loss-fusion --recompute-granularity selective --lr 1.5e-4 --train-iters 1000

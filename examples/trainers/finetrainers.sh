torchrun --standalone --nproc_per_node=1 train.py --parallel_backend ptd --model_name wan \
  --pretrained_model_name_or_path Wan-AI/Wan2.1-T2V-1.3B-Diffusers --dataset_config training.json \
  --enable_precomputation --training_type lora --rank 32 --target_modules "blocks.*(to_q|to_k|to_v|to_out.0)" \
  --batch_size 1 --gradient_checkpointing --optimizer adamw

accelerate launch examples/wanvideo/model_training/train.py \
  --dataset_base_path data/videos --dataset_metadata_path data/videos/metadata.csv --dataset_repeat 100 \
  --height 480 --width 832 --num_frames 49 --learning_rate 1e-4 --num_epochs 5 \
  --model_id_with_origin_paths "Wan-AI/Wan2.1-T2V-1.3B:diffusion_pytorch_model*.safetensors,Wan-AI/Wan2.1-T2V-1.3B:models_t5_umt5-xxl-enc-bf16.pth,Wan-AI/Wan2.1-T2V-1.3B:Wan2.1_VAE.pth" \
  --remove_prefix_in_ckpt "pipe.dit." --output_path models/wan_lora \
  --lora_base_model "dit" --lora_target_modules "q,k,v,o,ffn.0,ffn.2" --lora_rank 32

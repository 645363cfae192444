accelerate launch --mixed_precision=bf16 --num_processes=1 train_text_to_image_lora.py \
  --pretrained_model_name_or_path=examples/configs/stable_diffusion --dataset_name=lambdalabs/naruto-blip-captions \
  --resolution=512 --train_batch_size=4 --rank=16 --gradient_checkpointing --output_dir=output

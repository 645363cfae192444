// Input: none.
// Output: ms-swift's settings that change no memory of a GPU, or too little to see; one that ends in '*' stands for all
// that begin so, and "env:" for a variable of the environment. Data sets and processors that its reader knows.
// Source: ms-swift 4, arguments/ and megatron/arguments/.
#pragma once

#include <string_view>

namespace gpumem::trainer_files {

inline constexpr std::string_view kSwiftWithoutEffect[] = {"add_non_thinking_prefix",
                                                           "add_version",
                                                           "agent_template",
                                                           "aligner_lr",
                                                           "apply_wd_to_qk_layernorm",
                                                           "async_save",
                                                           "attention_backend",
                                                           "attn_impl",
                                                           "cached_*",
                                                           "ce_loss_*",
                                                           "check_model",
                                                           "columns",
                                                           "create_checkpoint_symlink",
                                                           "custom_*",
                                                           "dataset*",
                                                           "early_stop_interval",
                                                           "env:CUDA_VISIBLE_DEVICES",
                                                           "env:HF_*",
                                                           "env:INFONCE_*",
                                                           "env:MASTER_*",
                                                           "env:MODELSCOPE_*",
                                                           "env:NNODES",
                                                           "env:NODE_RANK",
                                                           "env:NPROC_PER_NODE",
                                                           "env:OMP_NUM_THREADS",
                                                           "env:PYTORCH_CUDA_ALLOC_CONF",
                                                           "env:RANK",
                                                           "env:SPEAKER_NAME",
                                                           "env:SWIFT_*",
                                                           "env:USE_*",
                                                           "env:WANDB_*",
                                                           "env:WORLD_SIZE",
                                                           "external_plugins",
                                                           "finetune",
                                                           "galore_*",
                                                           "gradient_checkpointing_kwargs",
                                                           "init_weights",
                                                           "lazy_tokenize",
                                                           "lisa_*",
                                                           "llamapro_*",
                                                           "load_args",
                                                           "load_from_cache_file",
                                                           "lora_*",
                                                           "loss_scale",
                                                           "lr",
                                                           "max_epochs",
                                                           "max_model_len",
                                                           "merge_lora",
                                                           "min_lr",
                                                           "model_author",
                                                           "model_name",
                                                           "model_type",
                                                           "moe_aux_loss_coeff",
                                                           "moe_enable_deepep",
                                                           "moe_grouped_gemm",
                                                           "moe_permute_fusion",
                                                           "moe_router_dtype",
                                                           "moe_shared_expert_overlap",
                                                           "moe_token_dispatcher_type",
                                                           "no_load_*",
                                                           "no_save_*",
                                                           "num_labels",
                                                           "num_train_epochs",
                                                           "overlap_*",
                                                           "padding_free",
                                                           "problem_type",
                                                           "qk_clip_threshold",
                                                           "response_prefix",
                                                           "rope_scaling",
                                                           "router_aux_loss_coef",
                                                           "safe_serialization",
                                                           "shuffle_buffer_size",
                                                           "split_dataset_ratio",
                                                           "stopping_strategy",
                                                           "streaming",
                                                           "system",
                                                           "target_regex",
                                                           "template*",
                                                           "train_dataloader_shuffle",
                                                           "train_iters",
                                                           "truncation_strategy",
                                                           "use_chat_template",
                                                           "use_hf",
                                                           "use_logits_to_keep",
                                                           "vit_gradient_checkpointing",
                                                           "vit_lr"};

/// The same of Megatron-SWIFT, with the names that ms-swift 3 had for some of them.
inline constexpr std::string_view kMegatronSwiftWithoutEffect[] = {"cross_entropy_fusion_impl",
                                                                   "dataloader_*",
                                                                   "eval_*",
                                                                   "group_by_length",
                                                                   "linear_decoupled_in_proj",
                                                                   "load",
                                                                   "load_safetensors",
                                                                   "log_interval",
                                                                   "logging_*",
                                                                   "lr_*",
                                                                   "num_workers",
                                                                   "output_dir",
                                                                   "report_to",
                                                                   "save",
                                                                   "save_*",
                                                                   "seed",
                                                                   "use_flash_attn",
                                                                   "weight_decay"};

/// Data sets that hold pairs alone, which no text that does not fit goes with. Source: ms-swift 4,
/// dataset/dataset/llm.py (StsbPreprocessor), mllm.py (TextCapsEmbPreprocessor).
inline constexpr std::string_view kPairs[] = {"sentence-transformers/stsb", "sentence-transformers/stsb:positive",
                                              "swift/TextCaps:emb", "HuggingFaceM4/TextCaps:emb"};

/// A part of the names of InternVL.
inline constexpr std::string_view kInternVl[] = {"internvl"};

/// Models whose code, which comes with them, writes attention out unless it is told to use flash_attn. Source: their
/// modeling_deepseekv2.py, ATTENTION_CLASSES.
inline constexpr std::string_view kWithoutSdpa[] = {"deepseek-ocr", "deepseek-vl2"};

/// Models whose processors cut a picture into tiles: the picture that is cut into the most, and its tokens; then one
/// that is not cut. Names that hold others come first. Source: ms-swift 4, template/templates/deepseek.py (DeepseekOCR:
/// 640 or 768 pixels a tile; DeepseekVL2Template), minicpm.py; the published models' processors (at most 9 tiles,
/// DeepSeek-OCR 2: 6).
struct CutPicture {
  std::string_view model;
  std::string_view image;
  std::int64_t tokens;
};
inline constexpr CutPicture kCutPictures[] = {{"deepseek-ocr-2", "2304x1536", 1121}, {"deepseek-ocr-2", "768x768", 257},
                                              {"deepseek-ocr", "1920x1920", 1203},   {"deepseek-ocr", "640x640", 273},
                                              {"deepseek-vl2", "1152x1152", 2017},   {"deepseek-vl2", "384x384", 421},
                                              {"minicpm-v-4.6", "1344x1344", 640},   {"minicpm-v-4.6", "448x448", 64},
                                              {"minicpm-v-4_6", "1344x1344", 640},   {"minicpm-v-4_6", "448x448", 64}};

}  // namespace gpumem::trainer_files

// Input: none.
// Output: the published sizes of models of one stack of layers, row by row, and what models of a class have in common.
// published_models.hpp makes configs of them. Source: the models' cards and config files.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpumem::summary::published_models_detail {

/// What models of one class have in common.
struct PublishedFamily {
  std::string_view name;
  std::string_view keys;    ///< of the sizes of its rows, with a space between them
  std::string_view fields;  ///< of every config
};

inline constexpr PublishedFamily kFamilies[] = {
    {"apart", "", ""},  // models of several parts, each row with all of its fields
    {"llama",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"mistral",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "mistral", "architectures": ["MistralForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": false, "sliding_window": null)"},
    {"mixtral",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings num_local_experts num_experts_per_tok",
     R"("model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"qwen2",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": false, "use_sliding_window": false)"},
    {"qwen3",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_act": "silu", "head_dim": 128, "tie_word_embeddings": false, "use_sliding_window": false, "attention_bias": false)"},
    {"qwen3_moe",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings moe_intermediate_size num_experts num_experts_per_tok",
     R"("model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "hidden_act": "silu", "head_dim": 128, "tie_word_embeddings": false, "decoder_sparse_step": 1, "mlp_only_layers": [], "attention_bias": false, "norm_topk_prob": true)"},
    {"gemma",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings head_dim",
     R"("model_type": "gemma", "architectures": ["GemmaForCausalLM"], "hidden_act": "gelu_pytorch_tanh", "tie_word_embeddings": true)"},
    {"gemma2",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings head_dim",
     R"("model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "tie_word_embeddings": true)"},
    {"gemma3_text",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings head_dim",
     R"("model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 512, "sliding_window_pattern": 6, "tie_word_embeddings": true)"},
    {"phi", "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size max_position_embeddings",
     R"("model_type": "phi", "architectures": ["PhiForCausalLM"], "hidden_act": "gelu_new", "partial_rotary_factor": 0.5, "tie_word_embeddings": false)"},
    {"phi3",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "phi3", "architectures": ["Phi3ForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"gpt_neox",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size max_position_embeddings",
     R"("model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "hidden_act": "gelu", "rotary_pct": 0.25, "use_parallel_residual": true, "tie_word_embeddings": false)"},
    {"opt",
     "hidden_size ffn_dim num_hidden_layers num_attention_heads vocab_size max_position_embeddings word_embed_proj_dim",
     R"("model_type": "opt", "architectures": ["OPTForCausalLM"], "activation_function": "relu", "do_layer_norm_before": true)"},
    {"gpt2", "n_embd n_layer n_head vocab_size n_positions",
     R"("model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": "gelu_new")"},
    {"bloom", "hidden_size n_layer n_head vocab_size",
     R"("model_type": "bloom", "architectures": ["BloomForCausalLM"])"},
    {"falcon", "hidden_size num_hidden_layers num_attention_heads num_kv_heads vocab_size",
     R"("model_type": "falcon", "architectures": ["FalconForCausalLM"], "bias": false, "alibi": false, "parallel_attn": true)"},
    {"gptj", "n_embd n_layer n_head rotary_dim vocab_size n_positions",
     R"("model_type": "gptj", "architectures": ["GPTJForCausalLM"], "activation_function": "gelu_new", "tie_word_embeddings": false)"},
    {"bert",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size max_position_embeddings "
     "type_vocab_size",
     R"("model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_act": "gelu")"},
    {"roberta",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size max_position_embeddings "
     "type_vocab_size",
     R"("model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "hidden_act": "gelu")"},
    {"xlm-roberta",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size max_position_embeddings "
     "type_vocab_size",
     R"("model_type": "xlm-roberta", "architectures": ["XLMRobertaForMaskedLM"], "hidden_act": "gelu")"},
    {"distilbert", "dim hidden_dim n_layers n_heads vocab_size max_position_embeddings",
     R"("model_type": "distilbert", "architectures": ["DistilBertForMaskedLM"], "activation": "gelu")"},
    {"t5", "d_model d_ff d_kv num_layers num_heads vocab_size",
     R"("model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "feed_forward_proj": "relu", "is_encoder_decoder": true, "relative_attention_num_buckets": 32)"},
    {"bart",
     "d_model encoder_layers decoder_layers encoder_ffn_dim decoder_ffn_dim encoder_attention_heads "
     "decoder_attention_heads vocab_size max_position_embeddings",
     R"("model_type": "bart", "architectures": ["BartForConditionalGeneration"], "activation_function": "gelu", "is_encoder_decoder": true)"},
    {"whisper",
     "d_model encoder_layers decoder_layers encoder_ffn_dim decoder_ffn_dim encoder_attention_heads "
     "decoder_attention_heads vocab_size num_mel_bins",
     R"("model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "activation_function": "gelu", "is_encoder_decoder": true, "max_source_positions": 1500, "max_target_positions": 448)"},
    {"vit", "hidden_size intermediate_size num_hidden_layers num_attention_heads patch_size image_size",
     R"("model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_act": "gelu", "num_channels": 3, "qkv_bias": true, "num_labels": 1000)"},
    {"starcoder2",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"], "hidden_act": "gelu_pytorch_tanh", "use_bias": true, "tie_word_embeddings": true)"},
    {"olmo",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "olmo", "architectures": ["OlmoForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"olmo2",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": false)"},
    {"stablelm",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "stablelm", "architectures": ["StableLmForCausalLM"], "hidden_act": "silu", "partial_rotary_factor": 0.25, "tie_word_embeddings": false)"},
    {"gpt_oss",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads head_dim vocab_size "
     "max_position_embeddings num_local_experts num_experts_per_tok",
     R"("model_type": "gpt_oss", "architectures": ["GptOssForCausalLM"], "hidden_act": "silu", "attention_bias": true, "sliding_window": 128, "tie_word_embeddings": false)"},
    {"deepseek",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size max_position_embeddings "
     "moe_intermediate_size n_routed_experts n_shared_experts num_experts_per_tok first_k_dense_replace kv_lora_rank "
     "qk_nope_head_dim qk_rope_head_dim v_head_dim",
     R"("hidden_act": "silu", "tie_word_embeddings": false, "moe_layer_freq": 1, "attention_bias": false)"},
    {"cohere",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "cohere", "architectures": ["CohereForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": true)"},
    {"smollm3",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "smollm3", "architectures": ["SmolLM3ForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": true)"},
    {"apertus",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "apertus", "architectures": ["ApertusForCausalLM"], "hidden_act": "xielu", "tie_word_embeddings": false)"},
    {"granite",
     "hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "granite", "architectures": ["GraniteForCausalLM"], "hidden_act": "silu", "tie_word_embeddings": true)"},
    {"granite4",
     "hidden_size intermediate_size shared_intermediate_size num_hidden_layers num_attention_heads "
     "num_key_value_heads vocab_size max_position_embeddings",
     R"("model_type": "granitemoehybrid", "architectures": ["GraniteMoeHybridForCausalLM"], "hidden_act": "silu", "num_local_experts": 0, "num_experts_per_tok": 0, "position_embedding_type": "rope", "tie_word_embeddings": true)"},
    {"lfm2",
     "hidden_size block_ff_dim num_hidden_layers num_attention_heads num_key_value_heads vocab_size "
     "max_position_embeddings",
     R"("model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "tie_word_embeddings": true)"},
};

/// The experts of gpt-oss, as its checkpoints have them.
inline constexpr std::string_view kMxfp4Experts =
    R"("quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]})";

/// Granite 4 without mixers, by the number of its layers.
inline constexpr std::string_view kAttention28 =
    R"("layer_types": ["attention")"
    R"(, "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention")"
    R"(, "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention")"
    R"(, "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention")"
    "]";
inline constexpr std::string_view kAttention40 =
    R"("layer_types": ["attention")"
    R"(, "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention")"
    R"(, "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention")"
    R"(, "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention", "attention")"
    "]";

/// Models of one size.
struct PublishedRow {
  std::string_view names;  ///< with a space between them
  std::string_view family;
  std::int64_t parameters;       ///< as published, tied weights once
  std::string_view sizes;        ///< in the order of the family's keys
  std::string_view fields = {};  ///< more, or in place of the family's
};

// Beside texts as long as some of these every field would have a line of its own.
// clang-format off
inline constexpr PublishedRow kRows[] = {
    {"meta-llama/Llama-2-7b-hf meta-llama/Llama-2-7b-chat-hf lmsys/vicuna-7b-v1.5", "llama", 6'738'415'616,
     "4096 11008 32 32 32 32000 4096"},
    {"meta-llama/Llama-2-13b-hf meta-llama/Llama-2-13b-chat-hf lmsys/vicuna-13b-v1.5", "llama", 13'015'864'320,
     "5120 13824 40 40 40 32000 4096"},
    {"meta-llama/Llama-2-70b-hf meta-llama/Llama-2-70b-chat-hf", "llama", 68'976'648'192,
     "8192 28672 80 64 8 32000 4096"},
    {"huggyllama/llama-7b", "llama", 6'738'415'616, "4096 11008 32 32 32 32000 2048"},
    {"huggyllama/llama-13b", "llama", 13'015'864'320, "5120 13824 40 40 40 32000 2048"},
    {"huggyllama/llama-30b", "llama", 32'528'943'616, "6656 17920 60 52 52 32000 2048"},
    {"huggyllama/llama-65b", "llama", 65'285'660'672, "8192 22016 80 64 64 32000 2048"},
    {"meta-llama/Meta-Llama-3-8B meta-llama/Meta-Llama-3-8B-Instruct", "llama", 8'030'261'248,
     "4096 14336 32 32 8 128256 8192"},
    {"meta-llama/Meta-Llama-3-70B meta-llama/Meta-Llama-3-70B-Instruct", "llama", 70'553'706'496,
     "8192 28672 80 64 8 128256 8192"},
    {"meta-llama/Llama-3.1-8B meta-llama/Llama-3.1-8B-Instruct deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama",
     8'030'261'248, "4096 14336 32 32 8 128256 131072"},
    {"meta-llama/Llama-3.1-70B meta-llama/Llama-3.1-70B-Instruct meta-llama/Llama-3.3-70B-Instruct "
     "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
     "llama", 70'553'706'496, "8192 28672 80 64 8 128256 131072"},
    {"meta-llama/Llama-3.1-405B meta-llama/Llama-3.1-405B-Instruct", "llama", 405'853'388'800,
     "16384 53248 126 128 8 128256 131072"},
    {"meta-llama/Llama-3.2-1B meta-llama/Llama-3.2-1B-Instruct", "llama", 1'235'814'400,
     "2048 8192 16 32 8 128256 131072", R"("head_dim": 64, "tie_word_embeddings": true)"},
    {"meta-llama/Llama-3.2-3B meta-llama/Llama-3.2-3B-Instruct", "llama", 3'212'749'824,
     "3072 8192 28 24 8 128256 131072", R"("head_dim": 128, "tie_word_embeddings": true)"},
    {"codellama/CodeLlama-7b-hf", "llama", 6'738'546'688, "4096 11008 32 32 32 32016 16384"},
    {"codellama/CodeLlama-13b-hf", "llama", 13'016'028'160, "5120 13824 40 40 40 32016 16384"},
    {"codellama/CodeLlama-34b-hf", "llama", 33'743'970'304, "8192 22016 48 64 8 32000 16384"},
    {"TinyLlama/TinyLlama-1.1B-Chat-v1.0 TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T TinyLlama/TinyLlama_v1.1 "
     "unsloth/tinyllama",
     "llama", 1'100'048'384, "2048 5632 22 32 4 32000 2048"},
    {"OuteAI/Llama-OuteTTS-1.0-1B", "llama", 1'248'397'312, "2048 8192 16 32 8 134400 131072",
     R"("head_dim": 64, "tie_word_embeddings": true)"},
    {"canopylabs/orpheus-3b-0.1-pretrained canopylabs/orpheus-3b-0.1-ft", "llama", 3'300'867'072,
     "3072 8192 28 24 8 156940 131072", R"("head_dim": 128, "tie_word_embeddings": true)"},
    {"HuggingFaceTB/SmolLM-135M HuggingFaceTB/SmolLM-135M-Instruct", "llama", 134'515'008, "576 1536 30 9 3 49152 2048",
     R"("tie_word_embeddings": true)"},
    {"HuggingFaceTB/SmolLM-360M HuggingFaceTB/SmolLM-360M-Instruct", "llama", 361'821'120,
     "960 2560 32 15 5 49152 2048", R"("tie_word_embeddings": true)"},
    {"HuggingFaceTB/SmolLM-1.7B HuggingFaceTB/SmolLM-1.7B-Instruct", "llama", 1'711'376'384,
     "2048 8192 24 32 32 49152 2048", R"("tie_word_embeddings": true)"},
    {"HuggingFaceTB/SmolLM2-135M HuggingFaceTB/SmolLM2-135M-Instruct", "llama", 134'515'008,
     "576 1536 30 9 3 49152 8192", R"("tie_word_embeddings": true)"},
    {"HuggingFaceTB/SmolLM2-360M HuggingFaceTB/SmolLM2-360M-Instruct", "llama", 361'821'120,
     "960 2560 32 15 5 49152 8192", R"("tie_word_embeddings": true)"},
    {"HuggingFaceTB/SmolLM2-1.7B HuggingFaceTB/SmolLM2-1.7B-Instruct", "llama", 1'711'376'384,
     "2048 8192 24 32 32 49152 8192", R"("tie_word_embeddings": true)"},
    {"openlm-research/open_llama_3b openlm-research/open_llama_3b_v2", "llama", 3'426'473'600,
     "3200 8640 26 32 32 32000 2048"},
    {"deepseek-ai/deepseek-coder-6.7b-base", "llama", 6'740'512'768, "4096 11008 32 32 32 32256 16384"},
    {"01-ai/Yi-6B", "llama", 6'061'035'520, "4096 11008 32 32 4 64000 4096"},
    {"01-ai/Yi-34B 01-ai/Yi-34B-Chat", "llama", 34'388'917'248, "7168 20480 60 56 8 64000 4096"},
    {"tiiuae/Falcon3-7B-Base", "llama", 7'455'550'464, "3072 23040 28 12 4 131072 32768", R"("head_dim": 256)"},
    {"mistralai/Mistral-7B-v0.1 mistralai/Mistral-7B-Instruct-v0.1 HuggingFaceH4/zephyr-7b-beta", "mistral",
     7'241'732'096, "4096 14336 32 32 8 32000 32768", R"("sliding_window": 4096)"},
    {"mistralai/Mistral-7B-Instruct-v0.2", "mistral", 7'241'732'096, "4096 14336 32 32 8 32000 32768"},
    {"mistralai/Mistral-7B-v0.3 mistralai/Mistral-7B-Instruct-v0.3", "mistral", 7'248'023'552,
     "4096 14336 32 32 8 32768 32768"},
    {"mistralai/Mistral-Nemo-Base-2407 mistralai/Mistral-Nemo-Instruct-2407", "mistral", 12'247'782'400,
     "5120 14336 40 32 8 131072 131072", R"("head_dim": 128)"},
    {"mistralai/Mistral-Small-24B-Base-2501 mistralai/Mistral-Small-24B-Instruct-2501", "mistral", 23'572'403'200,
     "5120 32768 40 32 8 131072 32768", R"("head_dim": 128)"},
    {"mistralai/Devstral-Small-2505 mistralai/Devstral-Small-2507", "mistral", 23'572'403'200,
     "5120 32768 40 32 8 131072 131072", R"("head_dim": 128)"},
    {"mistralai/Magistral-Small-2506 mistralai/Magistral-Small-2507", "mistral", 23'572'403'200,
     "5120 32768 40 32 8 131072 40960", R"("head_dim": 128)"},
    {"mistralai/Ministral-8B-Instruct-2410", "mistral", 8'019'808'256, "4096 12288 36 32 8 131072 32768",
     R"("head_dim": 128, "sliding_window": 32768)"},
    {"mistralai/Mixtral-8x7B-v0.1 mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral", 46'702'792'704,
     "4096 14336 32 32 8 32000 32768 8 2"},
    {"mistralai/Mixtral-8x22B-v0.1", "mixtral", 140'620'634'112, "6144 16384 56 48 8 32000 65536 8 2"},
    {"Qwen/Qwen2.5-0.5B Qwen/Qwen2.5-0.5B-Instruct Qwen/Qwen2.5-Coder-0.5B "
     "Qwen/Qwen2.5-Coder-0.5B-Instruct Qwen/Qwen2-0.5B-Instruct",
     "qwen2", 494'032'768, "896 4864 24 14 2 151936 32768", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen2-0.5B", "qwen2", 494'032'768, "896 4864 24 14 2 151936 131072", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen2.5-1.5B Qwen/Qwen2-1.5B", "qwen2", 1'543'714'304, "1536 8960 28 12 2 151936 131072",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen2.5-1.5B-Instruct Qwen/Qwen2.5-Coder-1.5B Qwen/Qwen2.5-Coder-1.5B-Instruct "
     "Qwen/Qwen2-1.5B-Instruct",
     "qwen2", 1'543'714'304, "1536 8960 28 12 2 151936 32768", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen2.5-3B Qwen/Qwen2.5-3B-Instruct Qwen/Qwen2.5-Coder-3B Qwen/Qwen2.5-Coder-3B-Instruct", "qwen2",
     3'085'938'688, "2048 11008 36 16 2 151936 32768", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen2.5-7B Qwen/Qwen2-7B deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "qwen2", 7'615'616'512,
     "3584 18944 28 28 4 152064 131072"},
    {"Qwen/Qwen2.5-7B-Instruct Qwen/Qwen2.5-Coder-7B Qwen/Qwen2.5-Coder-7B-Instruct Qwen/Qwen2-7B-Instruct", "qwen2",
     7'615'616'512, "3584 18944 28 28 4 152064 32768"},
    {"Qwen/Qwen2.5-Math-7B Qwen/Qwen2.5-Math-7B-Instruct", "qwen2", 7'615'616'512, "3584 18944 28 28 4 152064 4096"},
    {"Qwen/Qwen2.5-Math-1.5B Qwen/Qwen2.5-Math-1.5B-Instruct", "qwen2", 1'543'714'304, "1536 8960 28 12 2 151936 4096",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen2.5-14B deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", "qwen2", 14'770'033'664,
     "5120 13824 48 40 8 152064 131072"},
    {"Qwen/Qwen2.5-14B-Instruct Qwen/Qwen2.5-Coder-14B Qwen/Qwen2.5-Coder-14B-Instruct", "qwen2", 14'770'033'664,
     "5120 13824 48 40 8 152064 32768"},
    {"Qwen/Qwen2.5-32B deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "qwen2", 32'763'876'352,
     "5120 27648 64 40 8 152064 131072"},
    {"Qwen/Qwen2.5-32B-Instruct Qwen/Qwen2.5-Coder-32B Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2", 32'763'876'352,
     "5120 27648 64 40 8 152064 32768"},
    {"Qwen/Qwen2.5-72B", "qwen2", 72'706'203'648, "8192 29568 80 64 8 152064 131072"},
    {"Qwen/Qwen2.5-72B-Instruct Qwen/Qwen2-72B-Instruct", "qwen2", 72'706'203'648, "8192 29568 80 64 8 152064 32768"},
    {"Qwen/QwQ-32B", "qwen2", 32'763'876'352, "5120 27648 64 40 8 152064 40960"},
    {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", "qwen2", 1'777'088'000, "1536 8960 28 12 2 151936 131072"},
    {"Qwen/Qwen3-0.6B", "qwen3", 596'049'920, "1024 3072 28 16 8 151936 40960", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-0.6B-Base", "qwen3", 596'049'920, "1024 3072 28 16 8 151936 32768", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-1.7B", "qwen3", 1'720'574'976, "2048 6144 28 16 8 151936 40960", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-1.7B-Base", "qwen3", 1'720'574'976, "2048 6144 28 16 8 151936 32768",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-4B", "qwen3", 4'022'468'096, "2560 9728 36 32 8 151936 40960", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-4B-Base", "qwen3", 4'022'468'096, "2560 9728 36 32 8 151936 32768", R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-8B", "qwen3", 8'190'735'360, "4096 12288 36 32 8 151936 40960"},
    {"Qwen/Qwen3-8B-Base", "qwen3", 8'190'735'360, "4096 12288 36 32 8 151936 32768"},
    {"Qwen/Qwen3-14B", "qwen3", 14'768'307'200, "5120 17408 40 40 8 151936 40960"},
    {"Qwen/Qwen3-14B-Base", "qwen3", 14'768'307'200, "5120 17408 40 40 8 151936 32768"},
    {"Qwen/Qwen3-32B", "qwen3", 32'762'123'264, "5120 25600 64 64 8 151936 40960"},
    {"Qwen/Qwen3-4B-Instruct-2507", "qwen3", 4'022'468'096, "2560 9728 36 32 8 151936 262144",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-4B-Thinking-2507", "qwen3", 4'022'468'096, "2560 9728 36 32 8 151936 262144",
     R"("tie_word_embeddings": true)"},
    {"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "qwen3", 8'190'735'360, "4096 12288 36 32 8 151936 131072"},
    {"Qwen/Qwen3-Embedding-0.6B Qwen/Qwen3-Reranker-0.6B", "qwen3", 595'776'512, "1024 3072 28 16 8 151669 32768",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-Embedding-4B", "qwen3", 4'021'774'336, "2560 9728 36 32 8 151665 40960",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-Embedding-8B", "qwen3", 7'567'295'488, "4096 12288 36 32 8 151665 40960",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-Reranker-4B", "qwen3", 4'021'784'576, "2560 9728 36 32 8 151669 40960",
     R"("tie_word_embeddings": true)"},
    {"Qwen/Qwen3-Reranker-8B", "qwen3", 8'188'548'096, "4096 12288 36 32 8 151669 40960"},
    {"Qwen/Qwen3-30B-A3B", "qwen3_moe", 30'532'122'624, "2048 6144 48 32 4 151936 40960 768 128 8"},
    {"Qwen/Qwen3-30B-A3B-Instruct-2507 Qwen/Qwen3-30B-A3B-Thinking-2507 Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_moe",
     30'532'122'624, "2048 6144 48 32 4 151936 262144 768 128 8"},
    {"Qwen/Qwen3-30B-A3B-Base", "qwen3_moe", 30'532'122'624, "2048 6144 48 32 4 151936 32768 768 128 8"},
    {"Qwen/Qwen3-235B-A22B", "qwen3_moe", 235'093'634'560, "4096 12288 94 64 4 151936 40960 1536 128 8"},
    {"Qwen/Qwen3-235B-A22B-Instruct-2507 Qwen/Qwen3-235B-A22B-Thinking-2507", "qwen3_moe", 235'093'634'560,
     "4096 12288 94 64 4 151936 262144 1536 128 8"},
    {"google/gemma-2b google/gemma-2b-it google/gemma-1.1-2b-it google/codegemma-2b", "gemma", 2'506'172'416,
     "2048 16384 18 8 1 256000 8192 256"},
    {"google/gemma-7b google/gemma-7b-it google/gemma-1.1-7b-it google/codegemma-7b google/codegemma-7b-it", "gemma",
     8'537'680'896, "3072 24576 28 16 16 256000 8192 256"},
    {"google/gemma-2-2b google/gemma-2-2b-it", "gemma2", 2'614'341'888, "2304 9216 26 8 4 256000 8192 256",
     R"("query_pre_attn_scalar": 256)"},
    {"google/gemma-2-9b google/gemma-2-9b-it", "gemma2", 9'241'705'984, "3584 14336 42 16 8 256000 8192 256",
     R"("query_pre_attn_scalar": 256)"},
    {"google/gemma-2-27b google/gemma-2-27b-it", "gemma2", 27'227'128'320, "4608 36864 46 32 16 256000 8192 128",
     R"("query_pre_attn_scalar": 144)"},
    {"google/gemma-3-1b-pt google/gemma-3-1b-it", "gemma3_text", 999'885'952, "1152 6912 26 4 1 262144 32768 256"},
    {"google/gemma-3-270m google/gemma-3-270m-it google/functiongemma-270m-it", "gemma3_text", 268'098'176,
     "640 2048 18 4 1 262144 32768 256"},
    {"microsoft/phi-1_5", "phi", 1'418'270'720, "2048 8192 24 32 51200 2048"},
    {"microsoft/phi-2", "phi", 2'779'683'840, "2560 10240 32 32 51200 2048", R"("partial_rotary_factor": 0.4)"},
    {"microsoft/Phi-3-mini-4k-instruct", "phi3", 3'821'079'552, "3072 8192 32 32 32 32064 4096"},
    {"microsoft/Phi-3.5-mini-instruct", "phi3", 3'821'079'552, "3072 8192 32 32 32 32064 131072"},
    {"microsoft/Phi-3-medium-4k-instruct", "phi3", 13'960'238'080, "5120 17920 40 40 10 32064 4096"},
    {"microsoft/phi-4", "phi3", 14'659'507'200, "5120 17920 40 40 10 100352 16384"},
    {"microsoft/Phi-4-reasoning microsoft/Phi-4-reasoning-plus", "phi3", 14'659'507'200,
     "5120 17920 40 40 10 100352 32768"},
    {"microsoft/Phi-4-mini-instruct microsoft/Phi-4-mini-reasoning", "phi3", 3'836'021'760,
     "3072 8192 32 24 8 200064 131072", R"("partial_rotary_factor": 0.75, "tie_word_embeddings": true)"},
    {"EleutherAI/pythia-70m EleutherAI/pythia-70m-deduped", "gpt_neox", 70'426'624, "512 2048 6 8 50304 2048"},
    {"EleutherAI/pythia-160m EleutherAI/pythia-160m-deduped", "gpt_neox", 162'322'944, "768 3072 12 12 50304 2048"},
    {"EleutherAI/pythia-410m EleutherAI/pythia-410m-deduped", "gpt_neox", 405'334'016, "1024 4096 24 16 50304 2048"},
    {"EleutherAI/pythia-1b EleutherAI/pythia-1b-deduped", "gpt_neox", 1'011'781'632, "2048 8192 16 8 50304 2048"},
    {"EleutherAI/pythia-1.4b EleutherAI/pythia-1.4b-deduped", "gpt_neox", 1'414'647'808, "2048 8192 24 16 50304 2048"},
    {"EleutherAI/pythia-2.8b EleutherAI/pythia-2.8b-deduped", "gpt_neox", 2'775'208'960, "2560 10240 32 32 50304 2048"},
    {"EleutherAI/pythia-6.9b EleutherAI/pythia-6.9b-deduped", "gpt_neox", 6'857'302'016, "4096 16384 32 32 50432 2048"},
    {"EleutherAI/pythia-12b EleutherAI/pythia-12b-deduped", "gpt_neox", 11'846'072'320, "5120 20480 36 40 50688 2048"},
    {"EleutherAI/gpt-neox-20b", "gpt_neox", 20'554'567'680, "6144 24576 44 64 50432 2048"},
    {"facebook/opt-125m", "opt", 125'239'296, "768 3072 12 12 50272 2048 768"},
    {"facebook/opt-1.3b", "opt", 1'315'758'080, "2048 8192 24 32 50272 2048 2048"},
    {"facebook/opt-2.7b", "opt", 2'651'596'800, "2560 10240 32 32 50272 2048 2560"},
    {"facebook/opt-6.7b", "opt", 6'658'473'984, "4096 16384 32 32 50272 2048 4096"},
    {"facebook/opt-13b", "opt", 12'853'473'280, "5120 20480 40 40 50272 2048 5120"},
    {"facebook/opt-30b", "opt", 29'974'540'288, "7168 28672 48 56 50272 2048 7168"},
    {"facebook/opt-66b", "opt", 65'719'025'664, "9216 36864 64 72 50272 2048 9216"},
    {"facebook/opt-350m", "opt", 331'196'416, "1024 4096 24 16 50272 2048 512", R"("do_layer_norm_before": false)"},
    {"gpt2 openai-community/gpt2", "gpt2", 124'439'808, "768 12 12 50257 1024"},
    {"gpt2-medium openai-community/gpt2-medium", "gpt2", 354'823'168, "1024 24 16 50257 1024"},
    {"gpt2-large openai-community/gpt2-large", "gpt2", 774'030'080, "1280 36 20 50257 1024"},
    {"gpt2-xl openai-community/gpt2-xl", "gpt2", 1'557'611'200, "1600 48 25 50257 1024"},
    {"distilgpt2 distilbert/distilgpt2", "gpt2", 81'912'576, "768 6 12 50257 1024"},
    {"bigscience/bloom-560m", "bloom", 559'214'592, "1024 24 16 250880"},
    {"bigscience/bloom-1b1", "bloom", 1'065'314'304, "1536 24 16 250880"},
    {"bigscience/bloom-1b7", "bloom", 1'722'408'960, "2048 24 16 250880"},
    {"bigscience/bloom-3b", "bloom", 3'002'557'440, "2560 30 32 250880"},
    {"bigscience/bloom-7b1", "bloom", 7'069'016'064, "4096 30 32 250880"},
    {"tiiuae/falcon-7b", "falcon", 6'921'720'704, "4544 32 71 71 65024",
     R"("multi_query": true, "new_decoder_architecture": false)"},
    {"tiiuae/falcon-40b", "falcon", 41'303'293'952, "8192 60 128 8 65024", R"("new_decoder_architecture": true)"},
    {"EleutherAI/gpt-j-6b", "gptj", 6'050'882'784, "4096 28 16 64 50400 2048"},
    {"bert-base-uncased google-bert/bert-base-uncased", "bert", 109'514'298, "768 3072 12 12 30522 512 2"},
    {"bert-large-uncased google-bert/bert-large-uncased", "bert", 335'174'458, "1024 4096 24 16 30522 512 2"},
    {"bert-base-cased google-bert/bert-base-cased", "bert", 108'340'804, "768 3072 12 12 28996 512 2"},
    {"bert-base-chinese google-bert/bert-base-chinese", "bert", 102'290'312, "768 3072 12 12 21128 512 2"},
    {"bert-base-multilingual-cased google-bert/bert-base-multilingual-cased", "bert", 177'974'523,
     "768 3072 12 12 119547 512 2"},
    {"roberta-base FacebookAI/roberta-base", "roberta", 124'697'433, "768 3072 12 12 50265 514 1"},
    {"roberta-large FacebookAI/roberta-large", "roberta", 355'412'057, "1024 4096 24 16 50265 514 1"},
    {"xlm-roberta-base FacebookAI/xlm-roberta-base", "xlm-roberta", 278'295'186, "768 3072 12 12 250002 514 1"},
    {"xlm-roberta-large FacebookAI/xlm-roberta-large", "xlm-roberta", 560'142'482, "1024 4096 24 16 250002 514 1"},
    {"distilbert-base-uncased distilbert/distilbert-base-uncased", "distilbert", 66'985'530, "768 3072 6 12 30522 512"},
    {"t5-small google-t5/t5-small", "t5", 60'506'624, "512 2048 64 6 8 32128"},
    {"t5-base google-t5/t5-base", "t5", 222'903'552, "768 3072 64 12 12 32128"},
    {"t5-large google-t5/t5-large", "t5", 737'668'096, "1024 4096 64 24 16 32128"},
    {"t5-3b google-t5/t5-3b", "t5", 2'851'598'336, "1024 16384 128 24 32 32128"},
    {"google/flan-t5-small", "t5", 76'961'152, "512 1024 64 8 6 32128",
     R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"},
    {"google/flan-t5-base", "t5", 247'577'856, "768 2048 64 12 12 32128",
     R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"},
    {"google/flan-t5-large", "t5", 783'150'080, "1024 2816 64 24 16 32128",
     R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"},
    {"google/flan-t5-xl", "t5", 2'849'757'184, "2048 5120 64 24 32 32128",
     R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"},
    {"google/flan-t5-xxl", "t5", 11'135'332'352, "4096 10240 64 24 64 32128",
     R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"},
    {"facebook/bart-base", "bart", 139'420'416, "768 6 6 3072 3072 12 12 50265 1024"},
    {"facebook/bart-large", "bart", 406'291'456, "1024 12 12 4096 4096 16 16 50265 1024"},
    {"openai/whisper-tiny", "whisper", 37'760'640, "384 4 4 1536 1536 6 6 51865 80"},
    {"openai/whisper-base", "whisper", 72'593'920, "512 6 6 2048 2048 8 8 51865 80"},
    {"openai/whisper-small", "whisper", 241'734'912, "768 12 12 3072 3072 12 12 51865 80"},
    {"openai/whisper-medium", "whisper", 763'857'920, "1024 24 24 4096 4096 16 16 51865 80"},
    {"openai/whisper-large-v2", "whisper", 1'543'304'960, "1280 32 32 5120 5120 20 20 51865 80"},
    {"openai/whisper-large-v3", "whisper", 1'543'490'560, "1280 32 32 5120 5120 20 20 51866 128"},
    {"google/vit-base-patch16-224", "vit", 86'567'656, "768 3072 12 12 16 224"},
    {"google/vit-large-patch16-224", "vit", 304'326'632, "1024 4096 24 16 16 224"},
    {"bigcode/starcoder2-3b", "starcoder2", 3'030'371'328, "3072 12288 30 24 2 49152 16384"},
    {"bigcode/starcoder2-7b", "starcoder2", 7'173'923'840, "4608 18432 32 36 4 49152 16384"},
    {"bigcode/starcoder2-15b", "starcoder2", 15'957'889'024, "6144 24576 40 48 4 49152 16384",
     R"("tie_word_embeddings": false)"},
    {"allenai/OLMo-1B-hf", "olmo", 1'176'764'416, "2048 8192 16 16 16 50304 2048", R"("tie_word_embeddings": true)"},
    {"allenai/OLMo-7B-hf", "olmo", 6'888'095'744, "4096 11008 32 32 32 50304 2048"},
    {"allenai/OLMo-2-1124-7B", "olmo2", 7'298'617'344, "4096 11008 32 32 32 100352 4096"},
    {"allenai/OLMo-2-1124-13B", "olmo2", 13'716'198'400, "5120 13824 40 40 40 100352 4096"},
    {"stabilityai/stablelm-2-1_6b", "stablelm", 1'644'515'328, "2048 5632 24 32 32 100352 4096",
     R"("use_qkv_bias": true)"},
    {"stabilityai/stablelm-3b-4e1t", "stablelm", 2'795'443'200, "2560 6912 32 32 32 50304 4096"},
    {"openai/gpt-oss-20b", "gpt_oss", 20'914'757'184, "2880 2880 24 64 8 64 201088 131072 32 4", kMxfp4Experts},
    {"openai/gpt-oss-120b", "gpt_oss", 116'829'156'672, "2880 2880 36 64 8 64 201088 131072 128 4", kMxfp4Experts},
    {"deepseek-ai/DeepSeek-V2-Lite", "deepseek", 15'706'484'224,
     "2048 10944 27 16 102400 163840 1408 64 2 6 1 512 128 64 128",
     R"("model_type": "deepseek_v2", "architectures": ["DeepseekV2ForCausalLM"], "q_lora_rank": null)"},
    {"moonshotai/Moonlight-16B-A3B moonshotai/Moonlight-16B-A3B-Instruct", "deepseek", 15'960'110'208,
     "2048 11264 27 16 163840 8192 1408 64 2 6 1 512 128 64 128",
     R"("model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "q_lora_rank": null, "n_group": 1, "topk_group": 1)"},
    {"zai-org/GLM-4.7-Flash", "deepseek", 29'943'390'976, "2048 10240 47 20 154880 202752 1536 64 1 4 1 512 192 64 256",
     R"("model_type": "glm4_moe_lite", "architectures": ["Glm4MoeLiteForCausalLM"], "q_lora_rank": 768, "n_group": 1, "topk_group": 1)"},
    {"deepseek-ai/DeepSeek-V3 deepseek-ai/DeepSeek-R1", "deepseek", 671'026'404'352,
     "7168 18432 61 128 129280 163840 2048 256 1 8 3 512 128 64 128",
     R"("model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "q_lora_rank": 1536, "n_group": 8, "topk_group": 4, "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})"},
    {"CohereForAI/c4ai-command-r-v01", "cohere", 34'980'831'232, "8192 22528 40 64 64 256000 8192"},
    {"CohereForAI/aya-23-8B", "cohere", 8'028'033'024, "4096 14336 32 32 8 256000 8192"},
    {"swiss-ai/Apertus-8B-2509 swiss-ai/Apertus-8B-Instruct-2509", "apertus", 8'053'338'176,
     "4096 21504 32 32 8 131072 65536"},
    {"ibm-granite/granite-3.1-2b-base ibm-granite/granite-3.1-2b-instruct", "granite", 2'533'531'648,
     "2048 8192 40 32 8 49155 131072"},
    {"ibm-granite/granite-3.1-8b-base ibm-granite/granite-3.1-8b-instruct", "granite", 8'170'848'256,
     "4096 12800 40 32 8 49155 131072"},
    {"ibm-granite/granite-4.0-350m ibm-granite/granite-4.0-350m-base", "granite4", 352'379'904,
     "1024 2048 2048 28 16 4 100352 32768", kAttention28},
    {"ibm-granite/granite-4.0-1b ibm-granite/granite-4.0-1b-base", "granite4", 1'631'750'144,
     "2048 4096 4096 40 16 4 100352 131072", kAttention40},
    {"ibm-granite/granite-4.0-micro ibm-granite/granite-4.0-micro-base", "granite4", 3'402'836'480,
     "2560 8192 8192 40 40 8 100352 131072", kAttention40},
    {"LiquidAI/LFM2-1.2B LiquidAI/LFM2.5-1.2B-Base LiquidAI/LFM2.5-1.2B-Instruct", "lfm2", 1'170'340'608,
     "2048 12288 16 32 8 65536 128000", R"("full_attn_idxs": [2, 5, 8, 10, 12, 14])"},
    {"HuggingFaceTB/SmolLM3-3B HuggingFaceTB/SmolLM3-3B-Base", "smollm3", 3'075'098'624,
     "2048 11008 36 16 4 128256 65536"},
    {"mistralai/Ministral-3-8B-Instruct-2512 mistralai/Ministral-3-8B-Reasoning-2512 "
     "mistralai/Ministral-3-8B-Base-2512",
     "apart", 8'918'026'240, "",
     R"("model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "spatial_merge_size": 2, "vision_feature_layer": -1, "multimodal_projector_bias": false, "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "ministral3", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 34, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "max_position_embeddings": 262144, "hidden_act": "silu", "sliding_window": null}, )"
     R"("vision_config": {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "head_dim": 64, "image_size": 1540, "patch_size": 14, "hidden_act": "silu"})"},
    {"mistralai/Ministral-3-14B-Instruct-2512 mistralai/Ministral-3-14B-Reasoning-2512 "
     "mistralai/Ministral-3-14B-Base-2512",
     "apart", 13'945'031'680, "",
     R"("model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "spatial_merge_size": 2, "vision_feature_layer": -1, "multimodal_projector_bias": false, "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "ministral3", "hidden_size": 5120, "intermediate_size": 16384, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "max_position_embeddings": 262144, "hidden_act": "silu", "sliding_window": null}, )"
     R"("vision_config": {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16, "head_dim": 64, "image_size": 1540, "patch_size": 14, "hidden_act": "silu"})"},
    // Their checkpoints also hold keys and values of layers that read those of others; transformers leaves them out.
    {"google/gemma-4-E2B google/gemma-4-E2B-it",
     "apart", 5'104'297'504, "",
     R"("model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "tie_word_embeddings": true, "vision_soft_tokens_per_image": 280, )"
     R"("text_config": {"model_type": "gemma4_text", "hidden_size": 1536, "intermediate_size": 6144, "num_hidden_layers": 35, "num_attention_heads": 8, "num_key_value_heads": 1, "num_kv_shared_layers": 20, "use_double_wide_mlp": true, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"], "head_dim": 256, "global_head_dim": 512, "hidden_size_per_layer_input": 256, "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "attention_k_eq_v": false, "enable_moe_block": false, "final_logit_softcapping": 30.0, "sliding_window": 512, "max_position_embeddings": 131072, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true}, )"
     R"("vision_config": {"model_type": "gemma4_vision", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "patch_size": 16, "pooling_kernel_size": 3, "position_embedding_size": 10240, "use_clipped_linears": true, "hidden_activation": "gelu_pytorch_tanh"}, )"
     R"("audio_config": {"model_type": "gemma4_audio", "hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8, "subsampling_conv_channels": [128, 32], "conv_kernel_size": 5, "output_proj_dims": 1536})"},
    {"google/gemma-4-E4B google/gemma-4-E4B-it",
     "apart", 7'941'100'832, "",
     R"("model_type": "gemma4", "architectures": ["Gemma4ForConditionalGeneration"], "tie_word_embeddings": true, "vision_soft_tokens_per_image": 280, )"
     R"("text_config": {"model_type": "gemma4_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 42, "num_attention_heads": 8, "num_key_value_heads": 2, "num_kv_shared_layers": 18, "use_double_wide_mlp": false, "head_dim": 256, "global_head_dim": 512, "hidden_size_per_layer_input": 256, "vocab_size": 262144, "vocab_size_per_layer_input": 262144, "attention_k_eq_v": false, "enable_moe_block": false, "final_logit_softcapping": 30.0, "sliding_window": 512, "max_position_embeddings": 131072, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true}, )"
     R"("vision_config": {"model_type": "gemma4_vision", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12, "num_key_value_heads": 12, "head_dim": 64, "patch_size": 16, "pooling_kernel_size": 3, "position_embedding_size": 10240, "use_clipped_linears": true, "hidden_activation": "gelu_pytorch_tanh"}, )"
     R"("audio_config": {"model_type": "gemma4_audio", "hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8, "subsampling_conv_channels": [128, 32], "conv_kernel_size": 5, "output_proj_dims": 1536})"},
    {"meta-llama/Llama-3.2-11B-Vision meta-llama/Llama-3.2-11B-Vision-Instruct", "apart", 10'670'220'835, "",
     R"("model_type": "mllama", "architectures": ["MllamaForConditionalGeneration"], "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "mllama_text_model", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "max_position_embeddings": 131072, "hidden_act": "silu", "tie_word_embeddings": false}, )"
     R"("vision_config": {"model_type": "mllama_vision_model", "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_global_layers": 8, "attention_heads": 16, "image_size": 560, "patch_size": 14, "max_num_tiles": 4, "intermediate_layers_indices": [3, 7, 15, 23, 30], "vision_output_dim": 7680, "hidden_act": "gelu"})"},
    // The thinkers of models that speak, which trainers train.
    {"Qwen/Qwen2.5-Omni-7B", "apart", 8'931'813'888, "",
     R"("model_type": "qwen2_5_omni_thinker", "architectures": ["Qwen2_5OmniThinkerForConditionalGeneration"], "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "qwen2_5_omni_text", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768, "hidden_act": "silu"}, )"
     R"("vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31], "hidden_act": "silu"}, )"
     R"("audio_config": {"d_model": 1280, "encoder_ffn_dim": 5120, "encoder_layers": 32, "num_mel_bins": 128, "output_dim": 3584})"},
    {"Qwen/Qwen2.5-Omni-3B", "apart", 4'703'464'448, "",
     R"("model_type": "qwen2_5_omni_thinker", "architectures": ["Qwen2_5OmniThinkerForConditionalGeneration"], "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "qwen2_5_omni_text", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 2, "vocab_size": 151936, "max_position_embeddings": 32768, "hidden_act": "silu"}, )"
     R"("vision_config": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "out_hidden_size": 2048, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31], "hidden_act": "silu"}, )"
     R"("audio_config": {"d_model": 1280, "encoder_ffn_dim": 5120, "encoder_layers": 32, "num_mel_bins": 128, "output_dim": 2048})"},
    {"Qwen/Qwen3-Omni-30B-A3B-Instruct Qwen/Qwen3-Omni-30B-A3B-Thinking Qwen/Qwen3-Omni-30B-A3B-Captioner", "apart",
     31'719'205'488, "",
     R"("model_type": "qwen3_omni_moe_thinker", "architectures": ["Qwen3OmniMoeThinkerForConditionalGeneration"], "tie_word_embeddings": false, )"
     R"("text_config": {"model_type": "qwen3_omni_moe_text", "hidden_size": 2048, "intermediate_size": 768, "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": true, "num_hidden_layers": 48, )"
     R"("num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 152064, "max_position_embeddings": 65536, "hidden_act": "silu"}, )"
     R"("vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "out_hidden_size": 2048, "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24], "hidden_act": "gelu_pytorch_tanh"}, )"
     R"("audio_config": {"d_model": 1280, "encoder_ffn_dim": 5120, "encoder_layers": 32, "num_mel_bins": 128, "output_dim": 2048, "downsample_hidden_size": 480})"},
};
// clang-format on

}  // namespace gpumem::summary::published_models_detail

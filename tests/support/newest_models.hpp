// Models of 2025 and 2026 whose configs say more than decoders have, and models for sound, proteins and images: their
// parameters. Those of Gemma 3n, Llama 3.2 Vision, wav2vec 2.0, HuBERT, WavLM and ESM-2 are published to the digit; of
// the others the card gives a rounded number of billions, which is `billions`. Time series, nanochat,
// HyperCLOVA X and Mellum have the sizes of their classes' own defaults.
#pragma once

#include "published_models.hpp"

namespace gpumem::testing {

struct Newest {
  std::string_view name;
  std::int64_t parameters;
  double billions;
  std::string_view config;
};

inline constexpr Newest
    kNewest[] =
        {{"deepseek-v4-flash", 284'332'230'231, 284,
          R"({"model_type": "deepseek_v4", "hidden_size": 4096, "num_hidden_layers": 43, "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "q_lora_rank": 1024, "qk_rope_head_dim": 64, "o_groups": 8, "o_lora_rank": 1024, "index_n_heads": 64, "index_head_dim": 128, "moe_intermediate_size": 2048, "n_routed_experts": 256, "num_experts_per_tok": 6, "vocab_size": 129280, "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0]})"},
         {"minimax-m3", 426'174'565'632, 426,
          R"({"model_type": "minimax_m3", "hidden_size": 6144, "num_hidden_layers": 60, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 3072, "dense_intermediate_size": 12288, "num_local_experts": 128, "num_experts_per_tok": 4, "first_k_dense_replace": 3, "rotary_dim": 64, "vocab_size": 200064})"},
         {"step-3.5-flash", 196'956'130'368, 197,
          R"({"model_type": "step3p5", "hidden_size": 4096, "num_hidden_layers": 45, "num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128, "intermediate_size": 11264, "moe_intermediate_size": 1280, "share_expert_dim": 1280, "moe_num_experts": 288, "moe_top_k": 8, "vocab_size": 128896, "use_head_wise_attn_gate": true, "use_moe_router_bias": true, "attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 8}, "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]})"},
         {"openpangu-v2-505b", 504'641'371'665, 505,
          R"({"model_type": "pangu_v2_moe", "hidden_size": 5120, "num_hidden_layers": 50, "num_attention_heads": 64, "intermediate_size": 16128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1792, "first_k_dense_replace": 3, "index_n_heads": 32, "index_head_dim": 128, "dsa_layers": [0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 36, 39, 42, 45, 48, 49], "block_post_layernorm_idx": [0, 4, 9, 14, 19, 24, 29, 34, 39, 44], "param_sink_number": 128, "use_mome": true, "router_sliding_window": 3, "router_enable_expert_bias": true, "mhc_num_stream": 4, "mhc_recur_norm": 20, "vocab_size": 151552})"},
         {"gemma-3n-e4b", 7'849'978'192, 7.85,
          R"({"model_type": "gemma3n", "text_config": {"model_type": "gemma3n_text", "vocab_size": 262400, "hidden_size": 2048, "num_hidden_layers": 35, "intermediate_size": 16384}, "vision_config": {"model_type": "gemma3n_vision", "hidden_size": 2048}, "audio_config": {"model_type": "gemma3n_audio", "hidden_size": 1536}})"},
         {"phi-4-multimodal", 4'744'004'032, 4.74, R"({"model_type": "phi4_multimodal", "vocab_size": 200064, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8, "tie_word_embeddings": true, "partial_rotary_factor": 0.75, "vision_config": {"image_size": 448}, "audio_config": {"num_blocks": 24}})"},
         {"llama-3.2-11b-vision", 10'670'220'835, 10.67,
          R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model"}, "vision_config": {"model_type": "mllama_vision_model", "image_size": 560, "supported_aspect_ratios": [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]}})"},
         {"wav2vec2-base-960h", 94'396'320, 0.0944,
          R"({"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]})"},
         {"hubert-base", 94'371'712, 0.0944, R"({"model_type": "hubert", "architectures": ["HubertModel"]})"},
         {"wavlm-large", 315'453'120, 0.3155,
          R"({"model_type": "wavlm", "architectures": ["WavLMModel"], "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096, "feat_extract_norm": "layer", "do_stable_layer_norm": true})"},
         {"esm2-650m", 651'043'254, 0.651,
          R"({"model_type": "esm", "architectures": ["EsmForMaskedLM"], "vocab_size": 33, "hidden_size": 1280, "num_hidden_layers": 33, "num_attention_heads": 20, "intermediate_size": 5120, "position_embedding_type": "rotary", "token_dropout": true, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0})"},
         {"apertus-8b", 8'053'338'176, 8.05,
          R"({"model_type": "apertus", "vocab_size": 131072, "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 21504, "hidden_act": "xielu"})"},
         {"speecht5-tts", 144'431'684, 0.1444,
          R"({"model_type": "speecht5", "architectures": ["SpeechT5ForTextToSpeech"]})"},
         {"patchtst", 602'264, 0.000602, R"({"model_type": "patchtst", "architectures": ["PatchTSTForPrediction"]})"},
         {"time-series-transformer", 125'635, 0.0001256,
          R"({"model_type": "time_series_transformer", "architectures": ["TimeSeriesTransformerForPrediction"], "prediction_length": 24})"},
         {"moonshine-tiny", 27'092'736, 0.0271,
          R"({"model_type": "moonshine", "architectures": ["MoonshineForConditionalGeneration"]})"},
         {"patchtsmixer", 2'040, 0.00000204,
          R"({"model_type": "patchtsmixer", "architectures": ["PatchTSMixerForPrediction"]})"},
         {"dinov2-base", 85'728'770, 0.0857,
          R"({"model_type": "dinov2", "architectures": ["Dinov2ForImageClassification"]})"},
         {"w2v-bert-2.0", 580'525'920, 0.5805,
          R"({"model_type": "wav2vec2-bert", "architectures": ["Wav2Vec2BertForCTC"], "vocab_size": 32})"},
         {"opus-mt-en-de", 74'410'496, 0.0744,
          R"({"model_type": "marian", "architectures": ["MarianMTModel"], "vocab_size": 58101, "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "max_position_embeddings": 512, "activation_function": "swish", "scale_embedding": true})"},
         {"nllb-200-distilled-600m", 615'073'792, 0.615,
          R"({"model_type": "m2m_100", "architectures": ["M2M100ForConditionalGeneration"], "vocab_size": 256206, "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "max_position_embeddings": 1024, "activation_function": "relu", "scale_embedding": true})"},
         {"mbart-large-50", 610'879'488, 0.611,
          R"({"model_type": "mbart", "architectures": ["MBartForConditionalGeneration"], "vocab_size": 250054, "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "max_position_embeddings": 1024, "scale_embedding": true})"},
         {"pegasus-xsum", 569'748'480, 0.57,
          R"({"model_type": "pegasus", "architectures": ["PegasusForConditionalGeneration"], "vocab_size": 96103, "d_model": 1024, "encoder_layers": 16, "decoder_layers": 16, "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "max_position_embeddings": 512, "activation_function": "relu", "scale_embedding": true})"},
         {"plbart-base", 139'220'736, 0.139,
          R"({"model_type": "plbart", "architectures": ["PLBartForConditionalGeneration"], "vocab_size": 50005, "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "max_position_embeddings": 1024, "scale_embedding": true})"},
         {"blenderbot-400m", 364'802'560, 0.365,
          R"({"model_type": "blenderbot", "architectures": ["BlenderbotForConditionalGeneration"], "vocab_size": 8008, "d_model": 1280, "encoder_layers": 2, "decoder_layers": 12, "encoder_attention_heads": 32, "decoder_attention_heads": 32, "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "max_position_embeddings": 128, "scale_embedding": true})"},
         {"siglip-base-patch16-224", 203'155'970, 0.203,
          R"({"model_type": "siglip", "architectures": ["SiglipModel"], "text_config": {}, "vision_config": {}})"},
         {"siglip-so400m-patch14-384", 877'960'498, 0.878,
          R"({"model_type": "siglip", "architectures": ["SiglipModel"], "text_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16}, "vision_config": {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 384, "patch_size": 14}})"},
         {"clip-vit-base-patch32-classifier", 87'457'538, 0.0875,
          R"({"model_type": "clip", "architectures": ["CLIPForImageClassification"], "vision_config": {}})"},
         {"data2vec-audio-base", 93'188'896, 0.0932,
          R"({"model_type": "data2vec-audio", "architectures": ["Data2VecAudioForCTC"]})"},
         {"voxtral-mini-3b", 4'676'271'104, 4.68,
          R"({"model_type": "voxtral", "architectures": ["VoxtralForConditionalGeneration"], "audio_config": {}, "text_config": {"model_type": "llama"}})"},
         {"voxtral-small-24b", 24'261'800'960, 24.3,
          R"({"model_type": "voxtral", "architectures": ["VoxtralForConditionalGeneration"], "audio_config": {}, "text_config": {"model_type": "llama", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40}})"},
         {"qwen2-audio-7b", 8'397'094'912, 8.4,
          R"({"model_type": "qwen2_audio", "architectures": ["Qwen2AudioForConditionalGeneration"], "audio_config": {}, "text_config": {"model_type": "qwen2", "intermediate_size": 11008, "vocab_size": 156032}})"},
         {"blenderbot-small-90m", 87'508'992, 0.0875, R"({"model_type": "blenderbot-small", "architectures": ["BlenderbotSmallForConditionalGeneration"], "vocab_size": 54944, "d_model": 512, "encoder_layers": 8, "decoder_layers": 8, "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "max_position_embeddings": 512})"},
         {"nanochat", 256'573'440, 0.2566,
          R"({"model_type": "nanochat", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 8192, "vocab_size": 50304})"},
         {"hyperclovax", 6'738'677'760, 6.739,
          R"({"model_type": "hyperclovax", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "intermediate_size": 11008, "vocab_size": 32000})"},
         {"ministral-8b", 8'019'808'256, 8.02,
          R"({"model_type": "ministral", "hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 131072})"},
         {"solar-open-100b", 102'651'793'408, 102.65,
          R"({"model_type": "solar_open", "hidden_size": 4096, "num_hidden_layers": 48, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "moe_intermediate_size": 1280, "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "vocab_size": 196608})"},
         {"hy3-preview", 295'033'528'320, 295,
          R"({"model_type": "hy_v3", "hidden_size": 4096, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 13312, "moe_intermediate_size": 1536, "num_experts": 192, "num_experts_per_tok": 8, "vocab_size": 120832})"},
         {"mellum", 12'149'923'072, 12.15,
          R"({"model_type": "mellum", "hidden_size": 2304, "num_hidden_layers": 28, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 7168, "moe_intermediate_size": 896, "num_local_experts": 64, "num_experts_per_tok": 8, "vocab_size": 98304})"},
         {"lfm2-8b-a1b", 8'339'929'856, 8.34,
          R"({"model_type": "lfm2_moe", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 7168, "moe_intermediate_size": 1792, "num_experts": 32, "num_experts_per_tok": 4, "num_dense_layers": 2, "vocab_size": 65536, "layer_types": ["conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "full_attention", "conv", "conv"]})"}};

}  // namespace gpumem::testing

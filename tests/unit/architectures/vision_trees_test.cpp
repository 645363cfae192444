// Trees as print(model) shows them, of models that read images or speak: what a config of the same model answers.
#include <array>

#include "expect.hpp"
#include "gpumem/all.hpp"
#include "printed_tree.hpp"

namespace gpumem::testing {
namespace {

/// Blocks, norms and names of a Qwen2 within another model.
std::string qwen2_text() {
  return R"((embed_tokens): Embedding(151936, 896)
      (layers): ModuleList(
        (0-1): 2 x Qwen2DecoderLayer(
          (self_attn): Qwen2Attention(
            (q_proj): Linear(in_features=896, out_features=896, bias=True)
            (k_proj): Linear(in_features=896, out_features=128, bias=True)
            (v_proj): Linear(in_features=896, out_features=128, bias=True)
            (o_proj): Linear(in_features=896, out_features=896, bias=False)
          )
          (mlp): Qwen2MLP(
            (gate_proj): Linear(in_features=896, out_features=4864, bias=False)
            (up_proj): Linear(in_features=896, out_features=4864, bias=False)
            (down_proj): Linear(in_features=4864, out_features=896, bias=False)
            (act_fn): SiLU()
          )
          (input_layernorm): Qwen2RMSNorm((896,), eps=1e-06)
          (post_attention_layernorm): Qwen2RMSNorm((896,), eps=1e-06)
        )
      )
      (norm): Qwen2RMSNorm((896,), eps=1e-06)
      (rotary_emb): Qwen2RotaryEmbedding()
)";
}

TEST(PrintedTrees, OfOvis2) {
  const std::string tree = R"(Ovis2ForConditionalGeneration(
  (model): Ovis2Model(
    (vision_tower): Ovis2VisionModel(
      (transformer): Ovis2VisionTransformer(
        (embeddings): Ovis2VisionEmbeddings(
          (patch_embedding): Conv2d(3, 1024, kernel_size=(14, 14), stride=(14, 14), padding=valid)
          (position_embedding): Embedding(1024, 1024)
          (rms_norm): Ovis2RMSNorm((1024,), eps=1e-05)
        )
        (encoder): Ovis2VisionEncoder(
          (layers): ModuleList(
            (0-2): 3 x Ovis2VisionEncoderLayer(
              (attention): Ovis2VisionAttention(
                (k_proj): Linear(in_features=1024, out_features=1024, bias=False)
                (v_proj): Linear(in_features=1024, out_features=1024, bias=False)
                (q_proj): Linear(in_features=1024, out_features=1024, bias=False)
                (out_proj): Linear(in_features=1024, out_features=1024, bias=False)
              )
              (ffn): Ovis2MLP(
                (gate_proj): Linear(in_features=1024, out_features=2816, bias=False)
                (up_proj): Linear(in_features=1024, out_features=2816, bias=False)
                (down_proj): Linear(in_features=2816, out_features=1024, bias=False)
                (act_fn): SiLU()
              )
              (rms_norm1): Ovis2RMSNorm((1024,), eps=1e-05)
              (rms_norm2): Ovis2RMSNorm((1024,), eps=1e-05)
            )
          )
        )
        (rms_norm): Ovis2RMSNorm((1024,), eps=1e-05)
      )
      (head_linear): Linear(in_features=4096, out_features=65531, bias=False)
      (head_norm): LayerNorm((65531,), eps=1e-05, elementwise_affine=True)
    )
    (language_model): Qwen2Model(
      )" + qwen2_text() + R"()
    (visual_embeddings_table): Ovis2VisualEmbeddingTable(65536, 896)
  )
  (lm_head): Linear(in_features=896, out_features=151936, bias=False)
)
)";
  expect_one_answer(R"({"model_type": "ovis2", "architectures": ["Ovis2ForConditionalGeneration"],
      "text_config": {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 2,
      "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true},
      "vision_config": {"image_size": 448, "hidden_stride": 2, "vocab_size": 65536, "num_hidden_layers": 3}})",
                    tree);
}

constexpr std::string_view kErnieTree = R"(Ernie4_5_VLMoeForConditionalGeneration(
  (model): Ernie4_5_VLMoeModel(
    (language_model): Ernie4_5_VLMoeTextModel(
      (embed_tokens): Embedding(103424, 2560)
      (layers): ModuleList(
        (0): Ernie4_5_VLMoeDecoderLayer(
          (self_attn): Ernie4_5_VLMoeTextAttention(
            (q_proj): Linear(in_features=2560, out_features=2560, bias=False)
            (k_proj): Linear(in_features=2560, out_features=512, bias=False)
            (v_proj): Linear(in_features=2560, out_features=512, bias=False)
            (o_proj): Linear(in_features=2560, out_features=2560, bias=False)
          )
          (mlp): Ernie4_5_VLMoeMLP(
            (gate_proj): Linear(in_features=2560, out_features=12288, bias=False)
            (up_proj): Linear(in_features=2560, out_features=12288, bias=False)
            (down_proj): Linear(in_features=12288, out_features=2560, bias=False)
            (act_fn): SiLUActivation()
          )
          (input_layernorm): Ernie4_5_VLMoeRMSNorm((2560,), eps=1e-05)
          (post_attention_layernorm): Ernie4_5_VLMoeRMSNorm((2560,), eps=1e-05)
        )
        (1-2): 2 x Ernie4_5_VLMoeDecoderLayer(
          (self_attn): Ernie4_5_VLMoeTextAttention(
            (q_proj): Linear(in_features=2560, out_features=2560, bias=False)
            (k_proj): Linear(in_features=2560, out_features=512, bias=False)
            (v_proj): Linear(in_features=2560, out_features=512, bias=False)
            (o_proj): Linear(in_features=2560, out_features=2560, bias=False)
          )
          (mlp): Ernie4_5_VLMoeMoeBlock(
            (text_moe): Ernie4_5_VLMoeSparseMoeBlock(
              (gate): Ernie4_5_VLMoeMoeTopKRouter(
                (moe_statics): Ernie4_5_VLMoeMoeStatics()
              )
              (experts): Ernie4_5_VLMoeMoeExperts(
                (act_fn): SiLUActivation()
              )
            )
            (vision_moe): Ernie4_5_VLMoeSparseMoeBlock(
              (gate): Ernie4_5_VLMoeMoeTopKRouter(
                (moe_statics): Ernie4_5_VLMoeMoeStatics()
              )
              (experts): Ernie4_5_VLMoeMoeExperts(
                (act_fn): SiLUActivation()
              )
            )
            (shared_experts): Ernie4_5_VLMoeMLP(
              (gate_proj): Linear(in_features=2560, out_features=3072, bias=False)
              (up_proj): Linear(in_features=2560, out_features=3072, bias=False)
              (down_proj): Linear(in_features=3072, out_features=2560, bias=False)
              (act_fn): SiLUActivation()
            )
          )
          (input_layernorm): Ernie4_5_VLMoeRMSNorm((2560,), eps=1e-05)
          (post_attention_layernorm): Ernie4_5_VLMoeRMSNorm((2560,), eps=1e-05)
        )
      )
      (norm): Ernie4_5_VLMoeRMSNorm((2560,), eps=1e-05)
      (rotary_emb): Ernie4_5_VLMoeTextRotaryEmbedding()
    )
    (vision_tower): Ernie4_5_VLMoeVisionTransformerPretrainedModel(
      (patch_embed): Ernie4_5_VLMoePatchEmbed(
        (proj): Linear(in_features=588, out_features=1280, bias=False)
      )
      (rotary_pos_emb): Ernie4_5_VLMoeVisionRotaryEmbedding()
      (blocks): ModuleList(
        (0-2): 3 x Ernie4_5_VLMoeVisionBlock(
          (norm1): LayerNorm((1280,), eps=1e-06, elementwise_affine=True)
          (norm2): LayerNorm((1280,), eps=1e-06, elementwise_affine=True)
          (attn): Ernie4_5_VLMoeVisionAttention(
            (qkv): Linear(in_features=1280, out_features=3840, bias=True)
            (proj): Linear(in_features=1280, out_features=1280, bias=True)
          )
          (mlp): Ernie4_5VLVisionMLP(
            (fc1): Linear(in_features=1280, out_features=5120, bias=True)
            (act): QuickGELUActivation()
            (fc2): Linear(in_features=5120, out_features=1280, bias=True)
          )
        )
      )
      (ln): LayerNorm((1280,), eps=1e-06, elementwise_affine=True)
    )
    (resampler_model): Ernie4_5_VLMoeVariableResolutionResamplerModel(
      (spatial_linear): Ernie4_5_VLMoeVisionMLP(
        (fc1): Linear(in_features=5120, out_features=5120, bias=True)
        (act_fn): GELU(approximate='none')
        (fc2): Linear(in_features=5120, out_features=5120, bias=True)
        (ln): LayerNorm((5120,), eps=1e-06, elementwise_affine=True)
      )
      (temporal_linear): Ernie4_5_VLMoeVisionMLP(
        (fc1): Linear(in_features=10240, out_features=5120, bias=True)
        (act_fn): GELU(approximate='none')
        (fc2): Linear(in_features=5120, out_features=5120, bias=True)
        (ln): LayerNorm((5120,), eps=1e-06, elementwise_affine=True)
      )
      (mlp): Linear(in_features=5120, out_features=2560, bias=True)
      (after_norm): Ernie4_5_VLMoeRMSNorm((2560,), eps=1e-05)
    )
  )
  (lm_head): Linear(in_features=2560, out_features=103424, bias=False)
)
)";

TEST(PrintedTrees, OfErnie45Vl) {
  expect_one_answer(R"({"model_type": "ernie4_5_vl_moe", "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"],
      "text_config": {"num_hidden_layers": 3}, "vision_config": {"depth": 3}})",
                    kErnieTree);
}

/// Florence-2's text model, and the modules around it, of few layers.
std::string bart_tree(bool own_head) {
  const std::string attention = R"(
            (k_proj): Linear(in_features=768, out_features=768, bias=True)
            (v_proj): Linear(in_features=768, out_features=768, bias=True)
            (q_proj): Linear(in_features=768, out_features=768, bias=True)
            (out_proj): Linear(in_features=768, out_features=768, bias=True)
          )
)";
  const std::string norm = ": LayerNorm((768,), eps=1e-05, elementwise_affine=True)\n";
  const std::string fed =
      "(activation_fn): GELUActivation()\n(fc1): Linear(in_features=768, out_features=3072, bias=True)\n"
      "(fc2): Linear(in_features=3072, out_features=768, bias=True)\n(final_layer_norm)" +
      norm;
  const auto side = [&](const std::string& name, bool crosses) {
    const std::string cross = "(encoder_attn): BartSdpaAttention(" + attention + "(encoder_attn_layer_norm)" + norm;
    const std::string upper = name == "encoder" ? "Encoder" : "Decoder";
    return "(" + name + "): Bart" + upper + "(\n(embed_tokens): BartScaledWordEmbedding(51289, 768, padding_idx=1)\n" +
           "(embed_positions): BartLearnedPositionalEmbedding(1026, 768)\n(layers): ModuleList(\n(0-1): 2 x Bart" +
           upper + "Layer(\n(self_attn): BartSdpaAttention(" + attention + "(self_attn_layer_norm)" + norm +
           (crosses ? cross : "") + fed + ")\n)\n(layernorm_embedding)" + norm + ")\n";
  };
  const std::string body =
      "(shared): BartScaledWordEmbedding(51289, 768, padding_idx=1)\n" + side("encoder", false) + side("decoder", true);
  const std::string head = "(lm_head): Linear(in_features=768, out_features=51289, bias=False)\n";
  if (!own_head) return "(language_model): BartModel(\n" + body + ")\n";
  return "(language_model): Florence2LanguageForConditionalGeneration(\n(model): Florence2LanguageModel(\n" + body +
         ")\n" + head + ")\n";
}

/// One stage of few channels of Florence-2's tower; `publisher`: as the code beside its config names its modules.
std::string davit_stage(bool publisher, std::int64_t width) {
  const std::string w = std::to_string(width);
  const auto linear = [&](std::int64_t out) {
    return "Linear(in_features=" + w + ", out_features=" + std::to_string(out) + ", bias=True)\n";
  };
  const std::string norm = "LayerNorm((" + w + ",), eps=1e-05, elementwise_affine=True)\n";
  const std::string moves =
      "Conv2d(" + w + ", " + w + ", kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=" + w + ")\n";
  const auto part = [&](const std::string& name, const std::string& attention) {
    const std::string mixes = "(qkv): " + linear(3 * width) + "(proj): " + linear(width);
    const std::string narrow =
        "Linear(in_features=" + std::to_string(4 * width) + ", out_features=" + w + ", bias=True)\n";
    if (publisher) {
      return "(" + name + "): SpatialBlock(\n(conv1): PreNorm(\n(fn): DepthWiseConv2d(\n(dw): " + moves + ")\n)\n(" +
             attention + "): PreNorm(\n(norm): " + norm + "(fn): Attention(\n" + mixes + ")\n)\n(conv2): PreNorm(\n" +
             "(fn): DepthWiseConv2d(\n(dw): " + moves + ")\n)\n(ffn): PreNorm(\n(norm): " + norm +
             "(fn): Mlp(\n(net): Sequential(\n(fc1): " + linear(4 * width) +
             "(act): GELU(approximate='none')\n(fc2): " + narrow + ")\n)\n)\n)\n";
    }
    return "(" + name + "): Florence2VisionSpatialBlock(\n(conv1): " + moves + "(norm1): " + norm + "(" + attention +
           "): Florence2VisionWindowAttention(\n" + mixes + ")\n(conv2): " + moves + "(norm2): " + norm +
           "(ffn): Florence2VisionMLP(\n(activation_fn): GELUActivation()\n(fc1): " + linear(4 * width) +
           "(fc2): " + narrow + ")\n)\n";
  };
  return "Florence2VisionBlock(\n" + part("spatial_block", "window_attn") + part("channel_block", "channel_attn") +
         ")\n";
}

std::string davit_tree(bool publisher) {
  constexpr std::array<std::int64_t, 4> kWidths = {128, 256, 512, 1024};
  std::string convs;
  std::string blocks;
  std::int64_t in = 3;
  for (std::size_t at = 0; at < kWidths.size(); ++at) {
    const std::string number = std::to_string(at);
    const std::string shape = at == 0 ? "kernel_size=(7, 7), stride=(4, 4), padding=(3, 3))\n"
                                      : "kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))\n";
    convs += "(" + number + "): ConvEmbed(\n(" + (publisher ? "proj" : "conv") + "): Conv2d(" + std::to_string(in) +
             ", " + std::to_string(kWidths[at]) + ", " + shape + "(norm): LayerNorm((" +
             std::to_string(at == 0 ? kWidths[at] : in) + ",), eps=1e-05, elementwise_affine=True)\n)\n";
    in = kWidths[at];
    blocks += "(" + number + "): ModuleList(\n(0): " + davit_stage(publisher, kWidths[at]) + ")\n";
  }
  return "(vision_tower): DaViT(\n(convs): ModuleList(\n" + convs + ")\n(blocks): ModuleList(\n" + blocks + ")\n)\n";
}

constexpr std::string_view kFlorence = R"({"model_type": "florence2",
    "architectures": ["Florence2ForConditionalGeneration"], "text_config": {"model_type": "bart", "vocab_size": 51289,
    "d_model": 768, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 12,
    "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "max_position_embeddings": 1024},
    "vision_config": {"depths": [1, 1, 1, 1], "projection_dim": 768}})";

TEST(PrintedTrees, OfFlorence2) {
  expect_one_answer(kFlorence, "Florence2ForConditionalGeneration(\n(model): Florence2Model(\n" + davit_tree(false) +
                                   R"((multi_modal_projector): Florence2MultiModalProjector(
  (image_projection): Linear(in_features=1024, out_features=768, bias=False)
  (image_proj_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
  (image_position_embed): Florence2VisionLearnedAbsolutePositionEmbedding2D(
    (row_embeddings): Embedding(50, 512)
    (column_embeddings): Embedding(50, 512)
  )
  (visual_temporal_embed): Florence2VisionPositionalEmbeddingCosine1D()
)
)" + bart_tree(false) + ")\n(lm_head): Linear(in_features=768, out_features=51289, bias=False)\n)\n");
}

/// The code beside Microsoft's config names its modules otherwise: their sizes are taken, and the calls that a config
/// of its fields has.
TEST(PrintedTrees, OfFlorence2AsItsPublisherHasIt) {
  const std::string tree = "Florence2ForConditionalGeneration(\n" + davit_tree(true) +
                           R"((image_proj_norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
  (image_pos_embed): LearnedAbsolutePositionEmbedding2D(
    (row_embeddings): Embedding(50, 512)
    (column_embeddings): Embedding(50, 512)
  )
  (visual_temporal_embed): PositionalEmbeddingCosine1D()
)" + bart_tree(true) + ")\n";
  std::string config(kFlorence);
  const std::string_view depths = "\"depths\"";
  config.replace(config.find(depths), 0, "\"dim_embed\": [128, 256, 512, 1024], ");
  expect_one_answer(config, tree);
}

TEST(PrintedTrees, OfCsm) {
  const auto decoder = [](std::int64_t width, std::int64_t keys) {
    const std::string w = std::to_string(width);
    const std::string norm = "CsmRMSNorm((" + w + ",), eps=1e-05)\n";
    const auto linear = [](const std::string& in, const std::string& out) {
      return "Linear(in_features=" + in + ", out_features=" + out + ", bias=False)\n";
    };
    return "(layers): ModuleList(\n(0-1): 2 x CsmDecoderLayer(\n(self_attn): CsmAttention(\n(q_proj): " + linear(w, w) +
           "(k_proj): " + linear(w, std::to_string(keys)) + "(v_proj): " + linear(w, std::to_string(keys)) +
           "(o_proj): " + linear(w, w) + ")\n(mlp): CsmMLP(\n(gate_proj): " + linear(w, "8192") +
           "(up_proj): " + linear(w, "8192") + "(down_proj): " + linear("8192", w) +
           "(act_fn): SiLU()\n)\n(input_layernorm): " + norm + "(post_attention_layernorm): " + norm +
           ")\n)\n(norm): " + norm + "(rotary_emb): CsmRotaryEmbedding()\n";
  };
  const std::string tree =
      "CsmForConditionalGeneration(\n(embed_text_tokens): Embedding(128256, 2048)\n"
      "(backbone_model): CsmBackboneModel(\n(embed_tokens): CsmBackboneModelEmbeddings(\n"
      "(embed_audio_tokens): Embedding(65632, 2048)\n)\n" +
      decoder(2048, 512) +
      ")\n(depth_decoder): CsmDepthDecoderForCausalLM(\n(model): CsmDepthDecoderModel(\n"
      "(embed_tokens): Embedding(65632, 2048)\n" +
      decoder(1024, 256) +
      "(inputs_embeds_projector): Linear(in_features=2048, out_features=1024, bias=False)\n)\n"
      "(codebooks_head): CsmCodebooksHead()\n)\n"
      "(codec_model): MimiModel(\n(encoder): MimiEncoder(\n(layers): ModuleList(\n"
      "(0): MimiConv1d(\n(conv): Conv1d(1, 64, kernel_size=(7,), stride=(1,))\n)\n)\n)\n)\n"
      "(lm_head): Linear(in_features=2048, out_features=2051, bias=False)\n)\n";
  expect_one_answer(
      R"({"model_type": "csm", "num_hidden_layers": 2, "depth_decoder_config": {"num_hidden_layers": 2}})", tree);
}

/// Of a config, and of what is printed of the model that it describes.
void expect_one_answer_of(std::string_view config, std::string_view class_name, bool takes_images = true) {
  const auto graph = parse_summary(config);
  ASSERT_TRUE(succeeds(graph)) << class_name;
  expect_one_answer(config, printed_tree(*graph, class_name, ""), takes_images);
}

TEST(PrintedTrees, OfDenoisers) {
  constexpr std::string_view kUnet = R"({"_class_name": "UNet2DConditionModel", "cross_attention_dim": 768})";
  constexpr std::string_view kUnetXl = R"({"_class_name": "UNet2DConditionModel", "cross_attention_dim": 2048,
      "block_out_channels": [320, 640, 1280], "attention_head_dim": [5, 10, 20], "use_linear_projection": true,
      "transformer_layers_per_block": [1, 2, 10], "addition_embed_type": "text_time", "addition_time_embed_dim": 256,
      "projection_class_embeddings_input_dim": 2816, "sample_size": 128,
      "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
      "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"]})";
  constexpr std::string_view kPixels = R"({"_class_name": "UNet2DModel", "block_out_channels": [32, 64],
      "down_block_types": ["DownBlock2D", "AttnDownBlock2D"], "up_block_types": ["AttnUpBlock2D", "UpBlock2D"]})";
  constexpr std::string_view kFlux = R"({"_class_name": "FluxTransformer2DModel", "num_layers": 2,
      "num_single_layers": 3, "num_attention_heads": 24, "guidance_embeds": true})";
  constexpr std::string_view kSd3 = R"({"_class_name": "SD3Transformer2DModel", "num_layers": 3, "in_channels": 16,
      "num_attention_heads": 24, "caption_projection_dim": 1536, "out_channels": 16, "pos_embed_max_size": 384,
      "qk_norm": "rms_norm", "dual_attention_layers": [0, 1]})";
  expect_one_answer_of(kUnet, "UNet2DConditionModel");
  expect_one_answer_of(kUnetXl, "UNet2DConditionModel");
  expect_one_answer_of(kPixels, "UNet2DModel");
  expect_one_answer_of(kFlux, "FluxTransformer2DModel");
  expect_one_answer_of(kSd3, "SD3Transformer2DModel");
  expect_one_answer_of(R"({"_class_name": "QwenImageTransformer2DModel", "num_layers": 2})",
                       "QwenImageTransformer2DModel");
  expect_one_answer_of(R"({"_class_name": "ZImageTransformer2DModel", "n_layers": 2})", "ZImageTransformer2DModel");
  expect_one_answer_of(R"({"_class_name": "PixArtTransformer2DModel", "num_layers": 2, "caption_channels": 4096})",
                       "PixArtTransformer2DModel");
  expect_one_answer_of(R"({"_class_name": "WanTransformer3DModel", "num_layers": 2, "num_attention_heads": 12,
      "ffn_dim": 8960})",
                       "WanTransformer3DModel");
}

TEST(PrintedTrees, OfGemma3n) {
  constexpr std::string_view kText = R"({"model_type": "gemma3n_text", "vocab_size": 262400, "hidden_size": 2048,
      "num_hidden_layers": 12, "intermediate_size": 8192})";
  expect_one_answer_of(kText, "Gemma3nForCausalLM");
  expect_one_answer_of(R"({"model_type": "gemma3n", "text_config": )" + std::string(kText) + "}",
                       "Gemma3nForConditionalGeneration", false);
}

TEST(PrintedTrees, OfDbrx) {
  expect_one_answer_of(R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 2, "vocab_size": 100352,
      "attn_config": {"kv_n_heads": 8, "clip_qkv": 8.0}, "ffn_config": {"moe_num_experts": 16, "moe_top_k": 4,
      "ffn_hidden_size": 10752}})",
                       "DbrxForCausalLM");
}

TEST(PrintedTrees, OfLlama32Vision) {
  expect_one_answer_of(R"({"model_type": "mllama", "architectures": ["MllamaForConditionalGeneration"],
      "text_config": {"num_hidden_layers": 5, "cross_attention_layers": [3]}, "vision_config": {"image_size": 560}})",
                       "MllamaForConditionalGeneration");
}

TEST(PrintedTrees, OfDino) {
  expect_one_answer_of(R"({"model_type": "dinov2", "image_size": 518})", "Dinov2Model");
  expect_one_answer_of(R"({"model_type": "dinov2", "architectures": ["Dinov2ForImageClassification"],
      "image_size": 518, "hidden_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 24,
      "use_swiglu_ffn": true})",
                       "Dinov2ForImageClassification");
  expect_one_answer_of(R"({"model_type": "dinov3_vit", "num_register_tokens": 4})", "DINOv3ViTModel");
}

}  // namespace
}  // namespace gpumem::testing

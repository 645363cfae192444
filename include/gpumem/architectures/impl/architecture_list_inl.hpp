#pragma once

#include "gpumem/architectures/architecture.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "gpumem/architectures/ace_step.hpp"
#include "gpumem/architectures/albert.hpp"
#include "gpumem/architectures/autoencoder_kl.hpp"
#include "gpumem/architectures/bailing.hpp"
#include "gpumem/architectures/bamba.hpp"
#include "gpumem/architectures/bert.hpp"
#include "gpumem/architectures/bloom.hpp"
#include "gpumem/architectures/branching_nets.hpp"
#include "gpumem/architectures/clip.hpp"
#include "gpumem/architectures/cogvideox.hpp"
#include "gpumem/architectures/controlnet.hpp"
#include "gpumem/architectures/conv_nets.hpp"
#include "gpumem/architectures/cosmos3.hpp"
#include "gpumem/architectures/csm.hpp"
#include "gpumem/architectures/deberta.hpp"
#include "gpumem/architectures/deci.hpp"
#include "gpumem/architectures/deep_autoencoders.hpp"
#include "gpumem/architectures/deepseek.hpp"
#include "gpumem/architectures/deepseek_v4.hpp"
#include "gpumem/architectures/deepseek_vl.hpp"
#include "gpumem/architectures/detection_nets.hpp"
#include "gpumem/architectures/dino.hpp"
#include "gpumem/architectures/dots_ocr.hpp"
#include "gpumem/architectures/ernie_image.hpp"
#include "gpumem/architectures/ernie_vl.hpp"
#include "gpumem/architectures/esm.hpp"
#include "gpumem/architectures/florence2.hpp"
#include "gpumem/architectures/flux.hpp"
#include "gpumem/architectures/flux2.hpp"
#include "gpumem/architectures/gemma.hpp"
#include "gpumem/architectures/gemma3n.hpp"
#include "gpumem/architectures/gemma4.hpp"
#include "gpumem/architectures/glm4v.hpp"
#include "gpumem/architectures/gpt2.hpp"
#include "gpumem/architectures/gpt_neox.hpp"
#include "gpumem/architectures/gpt_oss.hpp"
#include "gpumem/architectures/granitemoe.hpp"
#include "gpumem/architectures/hidream.hpp"
#include "gpumem/architectures/hunyuan15_autoencoder.hpp"
#include "gpumem/architectures/hunyuan_image.hpp"
#include "gpumem/architectures/idefics.hpp"
#include "gpumem/architectures/ideogram4.hpp"
#include "gpumem/architectures/internvl.hpp"
#include "gpumem/architectures/internvl_chat.hpp"
#include "gpumem/architectures/jamba.hpp"
#include "gpumem/architectures/kandinsky5.hpp"
#include "gpumem/architectures/kimi_linear.hpp"
#include "gpumem/architectures/llama.hpp"
#include "gpumem/architectures/llama4.hpp"
#include "gpumem/architectures/llava.hpp"
#include "gpumem/architectures/ltx.hpp"
#include "gpumem/architectures/ltx_autoencoders.hpp"
#include "gpumem/architectures/lumina2.hpp"
#include "gpumem/architectures/mamba.hpp"
#include "gpumem/architectures/megatron.hpp"
#include "gpumem/architectures/minimax.hpp"
#include "gpumem/architectures/mixtral.hpp"
#include "gpumem/architectures/molmo2.hpp"
#include "gpumem/architectures/muse_glimmer.hpp"
#include "gpumem/architectures/nemotron_h.hpp"
#include "gpumem/architectures/olmo.hpp"
#include "gpumem/architectures/ovis.hpp"
#include "gpumem/architectures/pangu_v2.hpp"
#include "gpumem/architectures/patchtst.hpp"
#include "gpumem/architectures/phi.hpp"
#include "gpumem/architectures/phi4_multimodal.hpp"
#include "gpumem/architectures/prx.hpp"
#include "gpumem/architectures/qwen3_next.hpp"
#include "gpumem/architectures/qwen_vl.hpp"
#include "gpumem/architectures/residual_nets.hpp"
#include "gpumem/architectures/sana.hpp"
#include "gpumem/architectures/sd3.hpp"
#include "gpumem/architectures/segmentation_nets.hpp"
#include "gpumem/architectures/speecht5.hpp"
#include "gpumem/architectures/stablelm.hpp"
#include "gpumem/architectures/step3.hpp"
#include "gpumem/architectures/swin.hpp"
#include "gpumem/architectures/t5.hpp"
#include "gpumem/architectures/time_series.hpp"
#include "gpumem/architectures/timm_branches.hpp"
#include "gpumem/architectures/timm_stages.hpp"
#include "gpumem/architectures/timm_swin.hpp"
#include "gpumem/architectures/timm_vit.hpp"
#include "gpumem/architectures/video_autoencoders.hpp"
#include "gpumem/architectures/vit.hpp"
#include "gpumem/architectures/wan.hpp"
#include "gpumem/architectures/wav2vec2.hpp"
#include "gpumem/architectures/wav2vec2_bert.hpp"
#include "gpumem/architectures/whisper.hpp"
#include "gpumem/architectures/xlnet.hpp"
#include "gpumem/model/training_loop.hpp"

namespace gpumem::architectures {

namespace architecture_list_detail {

/// Of image models, whose classes any net may use.
inline constexpr std::array<std::span<const ModuleForward>, 39> kModuleForwards = {
    {kAggregationBlocks, kConvnextBlocks,    kDenseBlocks,    kDetectionNets,   kEncoderBlocks,     kFireBlocks,
     kGateBlocks,        kGhostBlocks,       kHighResolution, kInceptionBlocks, kInceptionV4Blocks, kMixedConvolutions,
     kNormActBlocks,     kNormalizerFree,    kPlainModules,   kRepBlocks,       kResidualBlocks,    kSegmentation,
     kSplitAttention,    kTimmAttention,     kTimmBlocks,     kTimmCoat,        kTimmConvnext,      kTimmCrossvit,
     kTimmGcvit,         kTimmHiera,         kTimmLevit,      kTimmMaxvit,      kTimmMetaformer,    kTimmMlps,
     kTimmMvit,          kTimmNest,          kTimmPyramids,   kTimmSwin,        kTimmVisformer,     kTimmVit,
     kTimmVolo,          kTorchvisionMaxvit, kXceptionBlocks}};

/// In the order of their names.
inline constexpr const Architecture* kArchitectures[] = {&ace_step::kArchitecture,
                                                         &ace_step::parts::kArchitecture,
                                                         &afmoe::kArchitecture,
                                                         &albert::kArchitecture,
                                                         &apertus::kArchitecture,
                                                         &auraflow::kArchitecture,
                                                         &autoencoder_kl::kArchitecture,
                                                         &baichuan::kArchitecture,
                                                         &bailing::kArchitecture,
                                                         &bamba::kArchitecture,
                                                         &bart::kArchitecture,
                                                         &bert::kArchitecture,
                                                         &blip2::kArchitecture,
                                                         &bloom::kArchitecture,
                                                         &boogu_image::kArchitecture,
                                                         &chatglm::kArchitecture,
                                                         &clip::kArchitecture,
                                                         &cogvideox::kArchitecture,
                                                         &cogview4::kArchitecture,
                                                         &cohere::kArchitecture,
                                                         &controlnet::kArchitecture,
                                                         &convnext::kArchitecture,
                                                         &cosmos::kArchitecture,
                                                         &cosmos3::kArchitecture,
                                                         &csm::kArchitecture,
                                                         &dbrx::kArchitecture,
                                                         &deberta::kArchitecture,
                                                         &deci::kArchitecture,
                                                         &deep_autoencoder::kArchitecture,
                                                         &deepseek::kArchitecture,
                                                         &deepseek_v4::kArchitecture,
                                                         &deepseek_vl::kArchitecture,
                                                         &diffllama::kArchitecture,
                                                         &diffusion_language::kArchitecture,
                                                         &dino::kArchitecture,
                                                         &distilbert::kArchitecture,
                                                         &dots_ocr::kArchitecture,
                                                         &ernie_image::kArchitecture,
                                                         &ernie_vl::kArchitecture,
                                                         &esm::kArchitecture,
                                                         &exaone::kArchitecture,
                                                         &falcon::kArchitecture,
                                                         &florence2::kArchitecture,
                                                         &flux::kArchitecture,
                                                         &flux2::kArchitecture,
                                                         &framepack::kArchitecture,
                                                         &gemma::kArchitecture,
                                                         &gemma3n::kArchitecture,
                                                         &gemma3n::kTextArchitecture,
                                                         &gemma4::kArchitecture,
                                                         &gemma4::kTextArchitecture,
                                                         &gemma4_unified::kArchitecture,
                                                         &gemma_vision::kArchitecture,
                                                         &glm::kArchitecture,
                                                         &glm4v::kArchitecture,
                                                         &got_ocr::kArchitecture,
                                                         &gpt2::kArchitecture,
                                                         &gpt_bigcode::kArchitecture,
                                                         &gpt_neo::kArchitecture,
                                                         &gpt_neox::kArchitecture,
                                                         &gpt_oss::kArchitecture,
                                                         &gptj::kArchitecture,
                                                         &granite_swa::kArchitecture,
                                                         &granitemoe::kArchitecture,
                                                         &hidream::kArchitecture,
                                                         &hunyuan15_autoencoder::kArchitecture,
                                                         &hunyuan_image::kArchitecture,
                                                         &hunyuan_video::kArchitecture,
                                                         &hunyuan_video15::kArchitecture,
                                                         &hunyuan_vl::kArchitecture,
                                                         &idefics2::kArchitecture,
                                                         &idefics3::kArchitecture,
                                                         &ideogram4::kArchitecture,
                                                         &internlm2::kArchitecture,
                                                         &internvl::kArchitecture,
                                                         &internvl_chat::kArchitecture,
                                                         &jamba::kArchitecture,
                                                         &jetmoe::kArchitecture,
                                                         &kandinsky5::kArchitecture,
                                                         &level_autoencoders::kArchitecture,
                                                         &longcat::kArchitecture,
                                                         &longcat_video::kArchitecture,
                                                         &kimi_linear::kArchitecture,
                                                         &krea2::kArchitecture,
                                                         &lfm2::kArchitecture,
                                                         &lfm2_vl::kArchitecture,
                                                         &llama::kArchitecture,
                                                         &llama4::kArchitecture,
                                                         &llava::kArchitecture,
                                                         &ltx::kArchitecture,
                                                         &ltx2::kArchitecture,
                                                         &ltx_autoencoders::kArchitecture,
                                                         &lumina2::kArchitecture,
                                                         &mage_flow::kArchitecture,
                                                         &mamba::kArchitecture,
                                                         &megatron::kArchitecture,
                                                         &megatron_t5::kArchitecture,
                                                         &mimo_v2::kArchitecture,
                                                         &minicpm::kArchitecture,
                                                         &minicpmv::kArchitecture,
                                                         &minimax::kArchitecture,
                                                         &minimax_m3::kArchitecture,
                                                         &minimax_m3_vl::kArchitecture,
                                                         &mixtral::kArchitecture,
                                                         &mllama::kArchitecture,
                                                         &mochi::kArchitecture,
                                                         &mochi_autoencoder::kArchitecture,
                                                         &modernbert::kArchitecture,
                                                         &modernbert::kDecoderArchitecture,
                                                         &molmo2::kArchitecture,
                                                         &molmo2::kTextArchitecture,
                                                         &moonshine::kArchitecture,
                                                         &moonvit::kArchitecture,
                                                         &mpt::kArchitecture,
                                                         &muse_glimmer::kArchitecture,
                                                         &muse_glimmer::kTextArchitecture,
                                                         &nemotron::kArchitecture,
                                                         &nemotron_h::kArchitecture,
                                                         &olmo::kArchitecture,
                                                         &olmo_hybrid::kArchitecture,
                                                         &omnigen::kArchitecture,
                                                         &opt::kArchitecture,
                                                         &ovis::kArchitecture,
                                                         &packed_siglip::kArchitecture,
                                                         &pangu_v2::kArchitecture,
                                                         &patchtsmixer::kArchitecture,
                                                         &patchtst::kArchitecture,
                                                         &phi::kArchitecture,
                                                         &phi3::kArchitecture,
                                                         &phi3_v::kArchitecture,
                                                         &phi4_multimodal::kArchitecture,
                                                         &pixart::kArchitecture,
                                                         &prx::kArchitecture,
                                                         &dit::kArchitecture,
                                                         &qwen3_next::kArchitecture,
                                                         &qwen_image::kArchitecture,
                                                         &qwen_vl::kArchitecture,
                                                         &recurrent_gemma::kArchitecture,
                                                         &resnet::kArchitecture,
                                                         &rotary_bert::kArchitecture,
                                                         &rwkv::kArchitecture,
                                                         &sana::kArchitecture,
                                                         &sd3::kArchitecture,
                                                         &sd3_controlnet::kArchitecture,
                                                         &segformer::kArchitecture,
                                                         &sound_language::kArchitecture,
                                                         &speecht5::kArchitecture,
                                                         &stablelm::kArchitecture,
                                                         &starcoder2::kArchitecture,
                                                         &step3::kArchitecture,
                                                         &swin::kArchitecture,
                                                         &t5::kArchitecture,
                                                         &telechat::kArchitecture,
                                                         &time_series::kArchitecture,
                                                         &unet::kArchitecture,
                                                         &unet_2d::kArchitecture,
                                                         &video_autoencoders::kArchitecture,
                                                         &vit::kArchitecture,
                                                         &wan::kArchitecture,
                                                         &wav2vec2::kArchitecture,
                                                         &wav2vec2_bert::kArchitecture,
                                                         &whisper::kArchitecture,
                                                         &xlnet::kArchitecture,
                                                         &z_image::kArchitecture,
                                                         &zamba2::kArchitecture,
                                                         &zlab_i1::kArchitecture};

}  // namespace architecture_list_detail

GPUMEM_INLINE const ModuleForward* module_forward(std::string_view class_name) {
  for (const std::span<const ModuleForward> family : architecture_list_detail::kModuleForwards) {
    for (const ModuleForward& row : family) {
      if (std::ranges::find(row.classes, class_name) != row.classes.end()) return &row;
    }
  }
  return nullptr;
}

namespace architecture_list_detail {

/// The types that came with a release of --transformers, or with one up to the next. Types that nearly all use with
/// code of the model's own from before that are left out. Marian, Pegasus, PLBart and Blenderbot are as they are since
/// then: before, their attention was written out. Source: huggingface/transformers, notes of the releases 4.49 to 5.6,
/// and its main of 5.16.
inline constexpr std::array<std::string_view, 17> kSince4_49 = {
    "helium", "granitemoeshared", "qwen2_5_vl",      "zamba2",      "smolvlm", "gemma3_text",
    "gemma3", "mistral3",         "llama4",          "llama4_text", "qwen3",   "qwen3_moe",
    "glm4",   "deepseek_v3",      "phi4_multimodal", "aya_vision",  "got_ocr2"};
inline constexpr std::array<std::string_view, 31> kSince4_52 = {"blip-2",
                                                                "instructblip",
                                                                "granitemoehybrid",
                                                                "bitnet",
                                                                "glm4v",
                                                                "internvl",
                                                                "falcon_h1",
                                                                "gemma3n",
                                                                "gemma3n_text",
                                                                "arcee",
                                                                "minimax",
                                                                "dots1",
                                                                "smollm3",
                                                                "ernie4_5",
                                                                "lfm2",
                                                                "ernie4_5_moe",
                                                                "exaone4",
                                                                "glm4_moe",
                                                                "gpt_oss",
                                                                "qwen2_5_omni",
                                                                "qwen2_5_omni_thinker",
                                                                "voxtral",
                                                                "marian",
                                                                "pegasus",
                                                                "plbart",
                                                                "blenderbot",
                                                                "blenderbot-small",
                                                                "cohere2_vision",
                                                                "deepseek_vl",
                                                                "csm",
                                                                "modernbert-decoder"};
inline constexpr std::array<std::string_view, 16> kSince4_56 = {
    "seed_oss",     "apertus",    "hunyuan_v1_dense", "hunyuan_v1_moe", "qwen3_next",     "qwen3_vl",
    "qwen3_vl_moe", "glm4v_moe",  "lfm2_vl",          "olmo3",          "qwen3_omni_moe", "qwen3_omni_moe_thinker",
    "ministral",    "vaultgemma", "flex_olmo",        "ovis2"};
inline constexpr std::array<std::string_view, 58> kSince5_0 = {"qwen3_5",
                                                               "qwen3_5_text",
                                                               "qwen3_5_moe",
                                                               "qwen3_5_moe_text",
                                                               "deepseek_v4",
                                                               "glm_moe_dsa",
                                                               "minimax_m2",
                                                               "minimax_m3",
                                                               "cwm",
                                                               "minimax_m3_vl_text",
                                                               "glm4_moe_lite",
                                                               "kimi_linear",
                                                               "kimi_k25",
                                                               "gemma4",
                                                               "gemma4_text",
                                                               "gemma4_unified",
                                                               "mimo_v2_flash",
                                                               "kimi_k3",
                                                               "step3p5",
                                                               "step3p7",
                                                               "ministral3",
                                                               "nanochat",
                                                               "hyperclovax",
                                                               "solar_open",
                                                               "hy_v3",
                                                               "mellum",
                                                               "lfm2_moe",
                                                               "eurobert",
                                                               "nomic_bert",
                                                               "diffllama",
                                                               "youtu",
                                                               "axk1",
                                                               "minicpm3",
                                                               "granite_swa",
                                                               "glm46v",
                                                               "glm_ocr",
                                                               "lighton_ocr",
                                                               "paddleocr_vl",
                                                               "minicpmv4_6",
                                                               "olmo_hybrid",
                                                               "afmoe",
                                                               "exaone_moe",
                                                               "cohere2_moe",
                                                               "mistral4",
                                                               "laguna",
                                                               "deepseek_ocr2",
                                                               "deepseek_ocr2_text",
                                                               "ernie4_5_vl_moe",
                                                               "ernie4_5_moe_vl",
                                                               "jais2",
                                                               "exaone4_5",
                                                               "qianfan_ocr",
                                                               "hunyuan_vl",
                                                               "muse_glimmer",
                                                               "muse_glimmer_text",
                                                               "minimax_m3_vl",
                                                               "granitemoe_swa",
                                                               "audioflamingo3"};

}  // namespace architecture_list_detail

GPUMEM_INLINE std::optional<model::Transformers> first_release(std::string_view model_type) {
  namespace detail = architecture_list_detail;
  using model::Transformers;
  const auto in = [&](std::span<const std::string_view> types) {
    return std::ranges::find(types, model_type) != types.end();
  };
  if (model_type == "deepseek_v32") return Transformers::v5_11;
  if (in(detail::kSince5_0)) return Transformers::v5_0;
  if (in(detail::kSince4_56)) return Transformers::v4_56;
  if (in(detail::kSince4_52)) return Transformers::v4_52;
  if (in(detail::kSince4_49)) return Transformers::v4_51;
  return std::nullopt;
}

GPUMEM_INLINE const Architectures& architectures() {
  namespace detail = architecture_list_detail;
  static const Architectures kAll(std::begin(detail::kArchitectures), std::end(detail::kArchitectures));
  return kAll;
}

}  // namespace gpumem::architectures

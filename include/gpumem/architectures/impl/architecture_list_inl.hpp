#pragma once

#include "gpumem/architectures/architecture.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "gpumem/architectures/albert.hpp"
#include "gpumem/architectures/apertus.hpp"
#include "gpumem/architectures/autoencoder_kl.hpp"
#include "gpumem/architectures/baichuan.hpp"
#include "gpumem/architectures/bamba.hpp"
#include "gpumem/architectures/bart.hpp"
#include "gpumem/architectures/bert.hpp"
#include "gpumem/architectures/bloom.hpp"
#include "gpumem/architectures/clip.hpp"
#include "gpumem/architectures/cogvideox.hpp"
#include "gpumem/architectures/cohere.hpp"
#include "gpumem/architectures/controlnet.hpp"
#include "gpumem/architectures/deberta.hpp"
#include "gpumem/architectures/deci.hpp"
#include "gpumem/architectures/deepseek.hpp"
#include "gpumem/architectures/deepseek_v4.hpp"
#include "gpumem/architectures/ernie_image.hpp"
#include "gpumem/architectures/esm.hpp"
#include "gpumem/architectures/flux.hpp"
#include "gpumem/architectures/flux2.hpp"
#include "gpumem/architectures/gemma.hpp"
#include "gpumem/architectures/gemma3n.hpp"
#include "gpumem/architectures/gemma4.hpp"
#include "gpumem/architectures/gemma_vision.hpp"
#include "gpumem/architectures/glm.hpp"
#include "gpumem/architectures/gpt2.hpp"
#include "gpumem/architectures/gpt_neox.hpp"
#include "gpumem/architectures/gpt_oss.hpp"
#include "gpumem/architectures/granitemoe.hpp"
#include "gpumem/architectures/hidream.hpp"
#include "gpumem/architectures/hunyuan_video15.hpp"
#include "gpumem/architectures/ideogram4.hpp"
#include "gpumem/architectures/internvl.hpp"
#include "gpumem/architectures/jamba.hpp"
#include "gpumem/architectures/kandinsky5.hpp"
#include "gpumem/architectures/kimi_linear.hpp"
#include "gpumem/architectures/krea2.hpp"
#include "gpumem/architectures/lfm2.hpp"
#include "gpumem/architectures/llama.hpp"
#include "gpumem/architectures/llama4.hpp"
#include "gpumem/architectures/llava.hpp"
#include "gpumem/architectures/ltx.hpp"
#include "gpumem/architectures/lumina2.hpp"
#include "gpumem/architectures/mamba.hpp"
#include "gpumem/architectures/megatron.hpp"
#include "gpumem/architectures/megatron_t5.hpp"
#include "gpumem/architectures/mimo_v2.hpp"
#include "gpumem/architectures/minimax.hpp"
#include "gpumem/architectures/mixtral.hpp"
#include "gpumem/architectures/mllama.hpp"
#include "gpumem/architectures/mochi.hpp"
#include "gpumem/architectures/modernbert.hpp"
#include "gpumem/architectures/moonvit.hpp"
#include "gpumem/architectures/nemotron_h.hpp"
#include "gpumem/architectures/olmo.hpp"
#include "gpumem/architectures/omnigen.hpp"
#include "gpumem/architectures/opt.hpp"
#include "gpumem/architectures/pangu_v2.hpp"
#include "gpumem/architectures/phi.hpp"
#include "gpumem/architectures/phi4_multimodal.hpp"
#include "gpumem/architectures/qwen3_next.hpp"
#include "gpumem/architectures/qwen_vl.hpp"
#include "gpumem/architectures/recurrent_gemma.hpp"
#include "gpumem/architectures/sana.hpp"
#include "gpumem/architectures/sd3.hpp"
#include "gpumem/architectures/stablelm.hpp"
#include "gpumem/architectures/step3.hpp"
#include "gpumem/architectures/swin.hpp"
#include "gpumem/architectures/t5.hpp"
#include "gpumem/architectures/timm_branches.hpp"
#include "gpumem/architectures/timm_stages.hpp"
#include "gpumem/architectures/timm_swin.hpp"
#include "gpumem/architectures/timm_vit.hpp"
#include "gpumem/architectures/unet.hpp"
#include "gpumem/architectures/video_autoencoders.hpp"
#include "gpumem/architectures/vit.hpp"
#include "gpumem/architectures/wan.hpp"
#include "gpumem/architectures/wav2vec2.hpp"
#include "gpumem/architectures/xlnet.hpp"
#include "gpumem/architectures/zamba2.hpp"

namespace gpumem::architectures {

namespace architecture_list_detail {

/// Of image models, whose classes any net may use.
inline constexpr std::array<std::span<const ModuleForward>, 19> kModuleForwards = {
    {kTimmAttention, kTimmBlocks, kTimmCoat, kTimmConvnext, kTimmCrossvit, kTimmGcvit, kTimmHiera, kTimmLevit,
     kTimmMaxvit, kTimmMetaformer, kTimmMlps, kTimmMvit, kTimmNest, kTimmPyramids, kTimmSwin, kTimmVisformer, kTimmVit,
     kTimmVolo, kTorchvisionMaxvit}};

/// In the order of their names: those before "l", and the others.
GPUMEM_INLINE Architectures from_a() {
  return {&albert(),
          &apertus(),
          &auraflow(),
          &autoencoder_kl(),
          &baichuan(),
          &bamba(),
          &bart(),
          &bert(),
          &bloom(),
          &clip(),
          &cogvideox(),
          &cohere(),
          &controlnet(),
          &cosmos(),
          &deberta(),
          &deci(),
          &deepseek(),
          &deepseek_v4(),
          &distilbert(),
          &ernie_image(),
          &esm(),
          &falcon(),
          &flux(),
          &flux2(),
          &gemma(),
          &gemma3n(),
          &gemma3n_text(),
          &gemma4(),
          &gemma4_text(),
          &gemma_vision(),
          &glm(),
          &gpt2(),
          &gpt_bigcode(),
          &gpt_neo(),
          &gpt_neox(),
          &gpt_oss(),
          &gptj(),
          &granitemoe(),
          &hidream(),
          &hunyuan_video(),
          &hunyuan_video15(),
          &idefics3(),
          &ideogram4(),
          &internvl(),
          &jamba(),
          &kandinsky5(),
          &kimi_linear(),
          &krea2()};
}
GPUMEM_INLINE Architectures from_l() {
  return {&lfm2(),
          &llama(),
          &llama4(),
          &llava(),
          &ltx(),
          &ltx2(),
          &lumina2(),
          &mamba(),
          &megatron(),
          &megatron_t5(),
          &mimo_v2(),
          &minimax(),
          &minimax_m3(),
          &mixtral(),
          &mllama(),
          &mochi(),
          &modernbert(),
          &moonvit(),
          &mpt(),
          &nemotron(),
          &nemotron_h(),
          &olmo(),
          &omnigen(),
          &opt(),
          &pangu_v2(),
          &phi(),
          &phi3(),
          &phi4_multimodal(),
          &pixart(),
          &qwen3_next(),
          &qwen_image(),
          &qwen_vl(),
          &recurrent_gemma(),
          &rwkv(),
          &sana(),
          &sd3(),
          &stablelm(),
          &starcoder2(),
          &step3(),
          &swin(),
          &t5(),
          &unet(),
          &video_autoencoders(),
          &vit(),
          &wan(),
          &wav2vec2(),
          &whisper(),
          &xlnet(),
          &z_image(),
          &zamba2()};
}

}  // namespace architecture_list_detail

GPUMEM_INLINE const ModuleForward* module_forward(std::string_view class_name) {
  for (const std::span<const ModuleForward> family : architecture_list_detail::kModuleForwards) {
    for (const ModuleForward& row : family) {
      if (std::ranges::find(row.classes, class_name) != row.classes.end()) return &row;
    }
  }
  return nullptr;
}

GPUMEM_INLINE const Architectures& architectures() {
  static const Architectures kAll = [] {
    Architectures all = architecture_list_detail::from_a();
    const Architectures more = architecture_list_detail::from_l();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kAll;
}

}  // namespace gpumem::architectures

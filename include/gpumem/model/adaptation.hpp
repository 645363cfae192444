// The words for which part of a model is trained and how the rest is held: adapters on a frozen base (PEFT's methods),
// quantised weights, and how one layer's weights are laid out in memory. adapt/ turns a job's options into these.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "gpumem/core/shape.hpp"
#include "gpumem/model/named.hpp"

namespace gpumem::model {

/// How the weights of the frozen base's linear layers are held, or, of float8, how linear layers multiply. Source:
/// bitsandbytes 0.45 (functional.py, nn/modules.py), AutoGPTQ 0.7 (nn_modules/qlinear/qlinear_tritonv2.py), torchao 0.9
/// (float8/float8_linear.py); ops/matrix.hpp for the others. The names of the last three are SimpleTuner's.
enum class Quantization : std::uint8_t {
  none,
  nf4,            ///< four bits a weight, the largest of each 64 in float32
  nf4_double,     ///< the same, and these scales in eight bits
  int8,           ///< LLM.int8(): a byte a weight, the largest of each row in float32
  gptq_4bit,      ///< four bits a weight, packed in int32; scales and zeros for each 128 of a column
  float8,         ///< weights stay as they are, and may be trained; each product copies its operands to eight bits
  int8_sdnq,      ///< SDNQ: a byte a weight, a scale a row in float32; products of copies in int8, rotated (Hadamard)
  fp8_torchao,    ///< torchao's Float8DynamicActivationFloat8Weight: a byte a weight; products of copies in float8
  fp8wo_torchao,  ///< torchao's Float8WeightOnly: a byte a weight, made whole for each product
  mxfp8,          ///< as float8, with a scale each 32 elements
  nvfp4,          ///< as float8, in four bits with a scale each 16 elements (TransformerEngine's alone)
  float8_params,  ///< as float8, and weights have no other form (Megatron's --fp8-param-gather)
  nf4_dynamic,    ///< Unsloth's dynamic checkpoints: nf4_double, and some layers stay whole
  float8_gather,  ///< as float8, and FSDP2 gathers weights in eight bits (torchao's enable_fsdp_float8_all_gather)
  nf4_experts,    ///< nf4_double, and experts whose weights are one tensor, too (axolotl's quantize_moe_experts)
  /// nf4_double, and in place of experts whose weights are one tensor the checkpoint has a linear layer for each.
  nf4_linear_experts,
};

inline constexpr auto kQuantizations = std::to_array<Named<Quantization>>({
    {Quantization::none, "none"},
    {Quantization::nf4, "nf4"},
    {Quantization::nf4_double, "nf4-double"},
    {Quantization::int8, "int8"},
    {Quantization::gptq_4bit, "gptq-4bit"},
    {Quantization::float8, "float8"},
    {Quantization::int8_sdnq, "int8-sdnq"},
    {Quantization::fp8_torchao, "fp8-torchao"},
    {Quantization::fp8wo_torchao, "fp8wo-torchao"},
    {Quantization::mxfp8, "mxfp8"},
    {Quantization::nvfp4, "nvfp4"},
    {Quantization::float8_params, "float8-params"},
    {Quantization::nf4_dynamic, "nf4-dynamic"},
    {Quantization::float8_gather, "float8-gather"},
    {Quantization::nf4_experts, "nf4-experts"},
    {Quantization::nf4_linear_experts, "nf4-linear-experts"},
});

/// Whether weights stay as they are, and products multiply copies of their operands in fewer bits.
[[nodiscard]] constexpr bool multiplies_copies(Quantization quantization) {
  return quantization == Quantization::float8 || quantization == Quantization::mxfp8 ||
         quantization == Quantization::nvfp4 || quantization == Quantization::float8_params ||
         quantization == Quantization::float8_gather;
}

/// Whether the weights themselves are held in fewer bits: these are frozen.
[[nodiscard]] constexpr bool holds_in_fewer_bits(Quantization quantization) {
  return quantization != Quantization::none && !multiplies_copies(quantization);
}

/// Whether bitsandbytes holds the weights in four bits.
[[nodiscard]] constexpr bool is_nf4(Quantization quantization) {
  return quantization == Quantization::nf4 || quantization == Quantization::nf4_double ||
         quantization == Quantization::nf4_dynamic || quantization == Quantization::nf4_experts ||
         quantization == Quantization::nf4_linear_experts;
}

/// Whether PEFT has adapters of their own for it, which skip casts that its plain Linear makes (tuners/lora/bnb.py,
/// gptq.py).
[[nodiscard]] constexpr bool has_own_adapters(Quantization quantization) {
  return is_nf4(quantization) || quantization == Quantization::int8 || quantization == Quantization::gptq_4bit;
}

/// PEFT's methods. What each of them adds to a model is a row of adapt/peft_methods.hpp, in this order.
enum class PeftMethod : std::uint8_t {
  none,  ///< LoRA, if the job has a rank; otherwise no adapters
  lora,
  rslora,
  pissa,
  lora_fa,
  mica,
  dora,
  adalora,
  vera,
  pvera,
  randlora,
  tinylora,
  unilora,
  vblora,
  gralora,
  lily,
  delora,
  peanut,
  deft,
  psoft,
  loha,
  lokr,
  hira,
  glora,
  fourierft,
  waveft,
  c3a,
  shira,
  osf,
  ia3,
  beft,
  road,
  oft,
  boft,
  hra,
  miss,
  ln_tuning,
  trainable_tokens,
  prompt_tuning,
  p_tuning,
  prefix_tuning,
  adaption_prompt,
  adamss,
  frod,
  cpt,
  multitask_prompt_tuning,
  cartridge,
  supertuning,
  xlora,
  poly,
};

inline constexpr std::array kPeftMethods = std::to_array<Named<PeftMethod>>({
    {PeftMethod::none, "none"},
    {PeftMethod::lora, "lora"},
    {PeftMethod::rslora, "rslora"},
    {PeftMethod::pissa, "pissa"},
    {PeftMethod::lora_fa, "lora-fa"},
    {PeftMethod::mica, "mica"},
    {PeftMethod::dora, "dora"},
    {PeftMethod::adalora, "adalora"},
    {PeftMethod::vera, "vera"},
    {PeftMethod::pvera, "pvera"},
    {PeftMethod::randlora, "randlora"},
    {PeftMethod::tinylora, "tinylora"},
    {PeftMethod::unilora, "unilora"},
    {PeftMethod::vblora, "vblora"},
    {PeftMethod::gralora, "gralora"},
    {PeftMethod::lily, "lily"},
    {PeftMethod::delora, "delora"},
    {PeftMethod::peanut, "peanut"},
    {PeftMethod::deft, "deft"},
    {PeftMethod::psoft, "psoft"},
    {PeftMethod::loha, "loha"},
    {PeftMethod::lokr, "lokr"},
    {PeftMethod::hira, "hira"},
    {PeftMethod::glora, "glora"},
    {PeftMethod::fourierft, "fourierft"},
    {PeftMethod::waveft, "waveft"},
    {PeftMethod::c3a, "c3a"},
    {PeftMethod::shira, "shira"},
    {PeftMethod::osf, "osf"},
    {PeftMethod::ia3, "ia3"},
    {PeftMethod::beft, "beft"},
    {PeftMethod::road, "road"},
    {PeftMethod::oft, "oft"},
    {PeftMethod::boft, "boft"},
    {PeftMethod::hra, "hra"},
    {PeftMethod::miss, "miss"},
    {PeftMethod::ln_tuning, "ln-tuning"},
    {PeftMethod::trainable_tokens, "trainable-tokens"},
    {PeftMethod::prompt_tuning, "prompt-tuning"},
    {PeftMethod::p_tuning, "p-tuning"},
    {PeftMethod::prefix_tuning, "prefix-tuning"},
    {PeftMethod::adaption_prompt, "adaption-prompt"},
    {PeftMethod::adamss, "adamss"},
    {PeftMethod::frod, "frod"},
    {PeftMethod::cpt, "cpt"},
    {PeftMethod::multitask_prompt_tuning, "multitask-prompt-tuning"},
    {PeftMethod::cartridge, "cartridge"},
    {PeftMethod::supertuning, "supertuning"},
    {PeftMethod::xlora, "xlora"},
    {PeftMethod::poly, "poly"},
});

/// The type of an adapter's weights.
enum class AdapterType : std::uint8_t {
  fp32,  ///< as PEFT makes them of a base in half precision (autocast_adapter_dtype)
  bf16,  ///< as litgpt and torchtune have them
};

inline constexpr std::array<Named<AdapterType>, 2> kAdapterTypes = {
    {{AdapterType::fp32, "fp32"}, {AdapterType::bf16, "bf16"}}};

[[nodiscard]] constexpr core::DType dtype_of(AdapterType type) {
  return type == AdapterType::fp32 ? core::DType::float32 : core::DType::bfloat16;
}

/// The type of the frozen base's weights that are not quantised.
enum class BaseType : std::uint8_t {
  precision,  ///< as the job's precision has it
  fp32,
  bf16,  ///< as from_pretrained(torch_dtype=bfloat16) loads them; autocast may compute on them all the same
  fp16,
};

inline constexpr std::array<Named<BaseType>, 4> kBaseTypes = {
    {{BaseType::precision, "precision"}, {BaseType::fp32, "fp32"}, {BaseType::bf16, "bf16"}, {BaseType::fp16, "fp16"}}};

/// Nothing: the precision tells.
[[nodiscard]] constexpr std::optional<core::DType> dtype_of(BaseType type) {
  switch (type) {
    case BaseType::fp32: return core::DType::float32;
    case BaseType::bf16: return core::DType::bfloat16;
    case BaseType::fp16: return core::DType::float16;
    case BaseType::precision: break;
  }
  return std::nullopt;
}

/// How one layer holds its weights, and which of them are trained.
struct WeightStorage {
  std::optional<core::DType> dtype = {};  ///< nothing: the type that the job's precision gives
  Quantization quantization = Quantization::none;
  /// For four bits: bitsandbytes before 0.43.2, whose product keeps its input, and weights that were quantised from
  /// float16, so that they are made whole in float16 and then cast.
  bool older_four_bits = false;
  bool on_host = false;                      ///< each product copies the weight from the host's memory, where it lies
  bool float8 = false;                       ///< a product with the weight copies both of its operands to eight bits
  Quantization copies = Quantization::none;  ///< TransformerEngine's: backward reads the copy that forward multiplied
  bool keeps_weight_copies = false;          ///< and the weight's, of both directions, stay from step to step
  bool keeps_input = false;                  ///< backward copies the input itself once more, since others keep it, too
  std::uint8_t frozen = 0;  ///< bit i: the layer's tensor i (0 the weight, 1 the bias) gets no gradient

  [[nodiscard]] bool freezes(std::size_t tensor) const { return tensor < 8 && (frozen >> tensor & 1U) != 0; }

  friend bool operator==(const WeightStorage&, const WeightStorage&) = default;
};

}  // namespace gpumem::model

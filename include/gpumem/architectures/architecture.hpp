// Input: the fields of a config.json, and what will be computed with the model.
// Output: the type Architecture: the model types that it covers, and its forward().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gpumem/architectures/config_fields.hpp"
#include "gpumem/architectures/forward.hpp"

namespace gpumem::architectures {

/// The head on a model's body, as the class in "architectures" says.
enum class Head : std::uint8_t {
  none,                     ///< LlamaModel: hidden states leave it
  encoder,                  ///< T5EncoderModel: without the decoder
  causal_lm,                ///< LlamaForCausalLM, GPT2LMHeadModel, T5ForConditionalGeneration
  masked_lm,                ///< BertForMaskedLM
  sequence_classification,  ///< one answer a sample, images too
  token_classification,     ///< one answer a token
  question_answering,       ///< two answers a token
};

struct Architecture {
  std::string_view name;
  std::span<const std::string_view> model_types;  ///< as config.json has them
  /// What the model is where "architectures" does not say.
  Head usual_head = Head::causal_lm;
  /// Reads the fields and makes the calls of forward(). Faults are remembered by both.
  void (*write)(ConfigFields&, Head, Forward&) = nullptr;
};

}  // namespace gpumem::architectures

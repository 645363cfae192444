// Whisper: convolutions over a spectrogram, an encoder, and a decoder of tokens.
// Source: transformers 4.48, models/whisper/modeling_whisper.py.
#pragma once

#include "gpumem/architectures/architecture.hpp"

namespace gpumem::architectures {

[[nodiscard]] const Architecture& whisper();

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/whisper_inl.hpp"
#endif

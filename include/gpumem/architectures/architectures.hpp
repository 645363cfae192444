// Input: the text of a HuggingFace config.json.
// Output: the ModelGraph of the model, as transformers 4.48 builds and calls it: embeddings, blocks, head and, when
// labels are passed, the loss within forward(). Samples are assumed to have no padding, so that no attention mask is
// made, and attention is PyTorch's scaled_dot_product_attention.
// To add an architecture: one file here and one row in the list of architectures_inl.hpp.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::architectures {

using Architectures = std::vector<const Architecture*>;

/// Every architecture that gpumem knows.
[[nodiscard]] const Architectures& architectures();

/// `file` is for messages. A model type that is not in the list, with the fields of a Llama, is answered as one, with a
/// warning. Fields that may change memory and are not understood are named in a warning.
///
/// Errors: malformed_input for text that is not a JSON object, or a field of the wrong kind or size;
/// missing_information for fields that are not there, and for an unknown model type.
[[nodiscard]] core::Result<model::ModelGraph> read_config(std::string_view text, const model::Vocabulary& vocabulary,
                                                          std::string_view file = {});

}  // namespace gpumem::architectures

#include "gpumem/core/config.hpp"
#if defined(GPUMEM_HEADER_ONLY)
#include "gpumem/architectures/impl/architectures_inl.hpp"
#endif

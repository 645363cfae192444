// Input: the text of a HuggingFace config.json, or the graph of a printed module tree.
// Output: the ModelGraph of the model, as transformers 4.48 builds and calls it: embeddings, blocks, head and, when
// labels are passed, the loss within forward(). Both ways lead through the same forward(). Masks of padded batches are
// the job's business (connect/graph_copy.hpp), and attention is PyTorch's scaled_dot_product_attention.
// To add an architecture: one namespace here, in a file of its relatives or its own, and one row in the list of
// architecture_list_inl.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/architectures/architecture.hpp"
#include "gpumem/architectures/printed_table.hpp"
#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::architectures {

/// How experts' weights are held.
enum class Experts : std::uint8_t {
  usual,   ///< as the model's class has them
  fused,   ///< one tensor for all experts of a layer
  listed,  ///< each expert has its own, which ranks can share
};

/// `file` is for messages. A model type that is not in the list, with the fields of a Llama and no others, is answered
/// as one. That, fields that may change memory and are not understood, and a size in the model's name that is not the
/// counted one are the graph's doubts.
///
/// Errors: malformed_input for text that is not a JSON object, or a field of the wrong kind or size;
/// missing_information for fields that are not there, for an unknown model type, and for fields that are not understood
/// and can hold parameters or activations (experts, towers, states, further heads); invalid_argument where `images`
/// says something and the model reads none. `experts`: where the architecture knows how transformers 5 has them, or how
/// Megatron does.
[[nodiscard]] core::Result<model::ModelGraph> read_config(std::string_view text, const model::Vocabulary& vocabulary,
                                                          std::string_view file = {}, const model::Images& images = {},
                                                          Experts experts = Experts::usual);

/// The same model's layers for those who only count them: of experts that are modules of their own one is there, the
/// last, and Layer::expert is how many there are. Errors: those of read_config().
[[nodiscard]] core::Result<model::ModelGraph> read_config_once(std::string_view text,
                                                               const model::Vocabulary& vocabulary);

/// The same model as samples with these images run it. `experts`: as read_config() has it. Errors: those of
/// read_config(); invalid_argument where the graph was not made of a config that reads images.
[[nodiscard]] core::Result<model::ModelGraph> with_images(const model::ModelGraph& graph,
                                                          const model::Vocabulary& vocabulary,
                                                          const model::Images& images,
                                                          Experts experts = Experts::usual);

/// first_release() of a printed tree's or table's type; nothing where its class is not known.
[[nodiscard]] std::optional<model::Transformers> first_release(const model::ModelGraph& printed);

/// Architecture::blocks of the architecture of this name (ModelGraph::architecture()).
[[nodiscard]] std::span<const std::string_view> block_classes(std::string_view architecture);

/// A model class that gpumem knows, found in a printed tree.
struct KnownTree {
  const Architecture* architecture = nullptr;
  const ModelClass* row = nullptr;
  Head head = Head::none;
  std::uint32_t scope = 0;  ///< the model's own container, whatever wraps it
};

/// The known model of a tree that has no edges; nothing if there is none, and of tables: see tree_of_table().
[[nodiscard]] std::optional<KnownTree> known_tree(const model::ModelGraph& graph);

/// The tree of a table whose class is known, and what a sample of it was; nothing where the rows are not all that the
/// class calls, as in a table that is cut.
[[nodiscard]] std::optional<TableTree> tree_of_table(const model::ModelGraph& table,
                                                     const model::Vocabulary& vocabulary);

/// A tree's model with its edges, and what was chosen because no tree prints it.
struct TreeModel {
  model::ModelGraph graph;
  std::vector<std::string> assumed;
};

/// `input`: one sample of the job without the batch, of ids their number; empty: the job does not say.
/// Errors: missing_information, with the line, where a module is not as its class has it, or holds parameters that the
/// class does not have.
[[nodiscard]] core::Result<TreeModel> read_tree(const model::ModelGraph& graph, const KnownTree& known,
                                                const model::Vocabulary& vocabulary,
                                                std::span<const std::int64_t> input = {});

/// The same of a tree whose model's calls depend on what a job says of images or sounds: as the config that the tree
/// tells, for with_images(). Nothing for any other model, and where the tree is not what its class says: read_tree()
/// says why.
[[nodiscard]] std::optional<model::ModelGraph> model_of_tree(const model::ModelGraph& printed,
                                                             const model::Vocabulary& vocabulary);

/// Whether the model keeps the keys and values of a sequence, as what writes text token by token does.
[[nodiscard]] bool keeps_cache(const model::ModelGraph& graph);

/// Whether layers of the model hold a state of another kind: of a recurrence, or of a convolution over tokens.
[[nodiscard]] bool keeps_state(const model::ModelGraph& graph);

/// Whether trees of a class are read as its architecture's.
[[nodiscard]] bool reads_trees_of(std::string_view class_name);
/// Whether models of a class share the embedding's weight with their output layer by default, in some sizes at least.
[[nodiscard]] bool ties_heads(std::string_view class_name);
/// Whether the output layer of a class, of this width and so many tokens, shares the embedding's weight by default.
/// `classes`: those of the tree.
[[nodiscard]] bool ties_head(std::string_view class_name, std::int64_t width, std::int64_t tokens,
                             std::span<const std::string> classes);
/// Whether a container's own parameters are its output layer's bias.
[[nodiscard]] bool ties_bias(std::string_view class_name);

}  // namespace gpumem::architectures

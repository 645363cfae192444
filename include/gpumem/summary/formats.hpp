// Input: the text of a model summary in any format.
// Output: its ModelGraph. A format has a name, a way to find its beginning in a text, and a way to read it from there,
// with the options that every format takes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpumem/core/result.hpp"
#include "gpumem/model/model_graph.hpp"
#include "gpumem/model/op_traits.hpp"

namespace gpumem::summary {

/// What the caller knows about a summary in addition to its text.
struct ReadOptions {
  /// The ops whose class names are layers; what is not among them and holds parameters is an error.
  /// gpumem::read_summary passes ops::vocabulary(). Must outlive the call.
  const model::Vocabulary* vocabulary = nullptr;
  std::string file = {};  ///< the file's name, for messages
  /// Take unknown layers that hold parameters as such: estimates become lower bounds, and say so. Otherwise they get an
  /// op of their own, whose memory is bounded (model::kOpaqueOp), if the vocabulary has it; else they are errors.
  bool lenient = false;
};

struct Format {
  std::string_view name;
  std::string_view description;  ///< how a user gets one
  /// The offset at which a summary of this format begins, at `from` or behind it; nothing if there is none.
  std::optional<std::size_t> (*sniff)(std::string_view text, std::size_t from);
  /// Reads the summary that begins at `begin`, as found by sniff. Text before and behind it is prose.
  core::Result<model::ModelGraph> (*parse)(std::string_view text, std::size_t begin, const ReadOptions& options);
};

// The list of all summary formats. To add one: a file here and a row in the list of formats_inl.hpp. A program with a
// format of its own passes a longer list to read().

using Formats = std::vector<const Format*>;

/// Every format that gpumem reads.
[[nodiscard]] const Formats& formats();

/// Finds the one format that the text is in and reads it. Text around the summary is prose and is ignored.
/// Errors: unknown_format if no format or several fit; malformed_input for text that is empty, binary or not
/// UTF-8; and those of the format. Each names the line, and options.file if given.
[[nodiscard]] core::Result<model::ModelGraph> read(std::string_view text, const ReadOptions& options,
                                                   const Formats& known = formats());

/// read() of a file, or read_folder() of a model's folder; "-" is standard input. A path that begins with '{' is the
/// text itself: the sizes that a command gives. A config may be asked for with another head (named_model()). Errors:
/// also unreadable_file.
[[nodiscard]] core::Result<model::ModelGraph> read_file(const std::string& path, const ReadOptions& options,
                                                        const Formats& known = formats());

/// About a path that cannot be read: it may be the name of a model whose sizes nobody has here. `error`: why it cannot.
[[nodiscard]] core::Error unknown_name(const std::string& path, core::Error error);

/// The model of this name ("Qwen/Qwen3-8B"): in this user's HuggingFace cache, else as published. No file of that name
/// is opened, and of the cache no config of more than `largest` bytes. `no_file`: why there is no such file, which is
/// the error for what is no model's name either.
[[nodiscard]] core::Result<model::ModelGraph> read_named(const std::string& name, const ReadOptions& options,
                                                         std::size_t largest, core::Error no_file);

}  // namespace gpumem::summary

// Input: the text of a model summary in any format.
// Output: its ModelGraph.
#pragma once

#include "gpumem/summary/formats.hpp"

namespace gpumem::summary {

/// Finds the one format that the text is in and reads it. Text around the summary is prose and is ignored.
/// Errors: unknown_format if no format or several fit; malformed_input for text that is empty, binary or not
/// UTF-8; and those of the format. Each names the line, and options.file if given.
[[nodiscard]] core::Result<model::ModelGraph> read(std::string_view text, const ReadOptions& options,
                                                   const Formats& known = formats());

/// read() of a file, or read_folder() of a model's folder; "-" is standard input. Errors: also unreadable_file.
[[nodiscard]] core::Result<model::ModelGraph> read_file(const std::string& path, const ReadOptions& options,
                                                        const Formats& known = formats());

/// The model of this name ("Qwen/Qwen3-8B"): in this user's HuggingFace cache, else as published. No file of that name
/// is opened, and of the cache no config of more than `largest` bytes. `no_file`: why there is no such file, which is
/// the error for what is no model's name either.
[[nodiscard]] core::Result<model::ModelGraph> read_named(const std::string& name, const ReadOptions& options,
                                                         std::size_t largest, core::Error no_file);

}  // namespace gpumem::summary

// Input: what a trainer's file or a command says of its model: a path, a name, or the program alone.
// Output: the model's summary for a request: a path, a name that is known, or the text of a config. What is taken for
// a model that is not here is told.
#pragma once

#include <string>
#include <vector>

#include "commands.hpp"
#include "trainer_files.hpp"

namespace gpumem::cli {

/// `beside`: the file that names the model. Of a path that is not here the last part may be a published name
/// ("/models/Qwen-Image"); of weights alone the program's usual model has the sizes. `strict`: nothing else is taken.
/// `texts` gets what was taken.
/// Errors: those of trainer_files::find_model().
[[nodiscard]] Result<std::string> told_model(const trainer_files::TrainerJob& job, const std::string& beside,
                                             bool strict, std::vector<std::string>& texts);

}  // namespace gpumem::cli

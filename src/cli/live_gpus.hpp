// Output: a function that reads this machine's GPUs again and again through one open driver, in the form that the
// launcher takes.
#pragma once

#include "site.hpp"

namespace gpumem::cli {

/// Errors: those of monitor::Nvml::open(), and of the first look.
[[nodiscard]] core::Result<launcher::ReadGpus> open_gpus();

}  // namespace gpumem::cli

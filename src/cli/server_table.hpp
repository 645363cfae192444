// Input: a server, and which of its GPUs a job gets. Output: the table of its GPUs, with a bar of each one's memory
// where it is printed to a terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "gpumem/place/server.hpp"
#include "terminal.hpp"

namespace gpumem::cli {

/// Which GPUs are marked, by their index, and with what: "<- vgg16".
struct MarkedGpus {
  std::span<const std::size_t> gpus;
  std::string_view id;
};

[[nodiscard]] std::string server_table(const place::Server& server, const MarkedGpus& marked, const Terminal& terminal);

/// An id out of a file, fit for a terminal.
[[nodiscard]] std::string printable_id(std::string_view id);

}  // namespace gpumem::cli

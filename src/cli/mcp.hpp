// Input: messages of a client of the Model Context Protocol (2025-06-18), one JSON object a line.
// Output: the answers. The tools are the questions that the command line answers, and their schemas are made from the
// rows of job options. What the command line reads is read: files that a call or its command names, and where a command
// leaves them out, the files that its program reads; there is no network.
// Source: modelcontextprotocol.io, specification 2025-06-18, "Lifecycle", "Tools" and "Transports" (stdio).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimated_jobs.hpp"

namespace gpumem::cli {

class McpServer {
 public:
  /// The answer to a message, on one line; nothing to a notification.
  [[nodiscard]] std::optional<std::string> answer(std::string_view message);

 private:
  Session session_;  ///< a model that was read is not read again for the next question
};

}  // namespace gpumem::cli

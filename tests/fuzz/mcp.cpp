// A message of a client of the Model Context Protocol. Whatever it is, the answer is one line of JSON with the client's
// id, and no answer is one to a notification alone. Messages that may name a file are left out: they would read it.
#include "mcp.hpp"

#include <nlohmann/json.hpp>

#include "fuzz.hpp"

namespace mcp_detail {

/// The model of a job, or a word of the command that starts it with a folder or an ending.
inline bool may_name_a_file(std::string_view input) {
  using namespace nlohmann::literals;
  if (input.find("summary") != std::string_view::npos || input.find('\\') != std::string_view::npos) return true;
  const auto asked = nlohmann::json::parse(input, nullptr, false);
  const auto command = "/params/arguments/command"_json_pointer;
  return asked.is_object() && asked.contains(command) &&
         asked[command].dump().find_first_of("/.~") != std::string::npos;
}

}  // namespace mcp_detail

GPUMEM_FUZZ_TARGET(mcp) {
  if (mcp_detail::may_name_a_file(input)) return false;
  static cli::McpServer server;
  const auto answer = server.answer(input);
  if (!answer) {
    const auto asked = nlohmann::json::parse(input, nullptr, false);
    require(asked.is_object() && !asked.contains("id"), "only a notification has no answer");
    return true;
  }
  require(answer->find('\n') == std::string::npos, "an answer is one line");
  const auto json = nlohmann::json::parse(*answer, nullptr, false);
  require(!json.is_discarded() && json.value("jsonrpc", "") == "2.0", "an answer is JSON-RPC");
  require(json.contains("result") != json.contains("error"), "an answer is a result or an error");
  return json.contains("result");
}

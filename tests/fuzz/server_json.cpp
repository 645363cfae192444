// A server as JSON, and the decisions of every policy on it.
#include "gpumem/place/server.hpp"

#include "fuzz.hpp"
#include "gpumem/place/policies.hpp"

namespace {

using namespace gpumem;

/// A built-in profile; a path in the input is not followed.
Result<GpuProfile> find_builtin(std::string_view name) {
  for (const auto& profile : device::builtin_profiles()) {
    if (profile.name == name) return find_profile(name);
  }
  return Error{ErrorCode::unknown_gpu, "there is no GPU profile " + core::quoted(name), {}};
}

void require_sound(const place::Policy& policy, const place::Request& request, const place::Server& server) {
  const place::Conditions conditions;
  std::size_t turn = 0;
  const place::Decision decision = policy.decide(request, server, conditions, turn);
  const auto wanted = static_cast<std::size_t>(request.gpus);
  fuzz::require(decision.gpus.empty() || decision.gpus.size() == wanted, "all GPUs or none");
  fuzz::require(decision.placed() == (decision.refusal == place::Refusal::none), "a refusal has a reason");
  fuzz::require(!place::explain(decision, request, server, conditions).empty(), "a decision has words");
  for (const std::size_t index : decision.gpus) {
    fuzz::require(server.gpus[index].free() >= *request.memory, "the job fits");
  }
  place::Server after = server;
  const bool twice = std::any_of(decision.gpus.begin(), decision.gpus.end(), [&](std::size_t index) {
    return server.gpus[index].jobs.find(request.id) != nullptr;
  });
  fuzz::require(place::place(decision, request, after).has_value() != twice, "a decision can be carried out");
}

}  // namespace

GPUMEM_FUZZ_TARGET(server_json) {
  const auto server = place::parse_server(input, "fuzzed.json", find_builtin);
  if (!server) {
    require_readable(server.error(), input);
    return false;
  }
  require(place::validate(*server).has_value(), "a server that was read is valid");
  const std::string written = place::to_json(*server);
  const auto again = place::parse_server(written, "written.json", find_builtin);
  require(again && place::to_json(*again) == written, "a server that was written is read back");
  place::Request request;
  request.id = "fuzzed";
  request.memory = Bytes(std::int64_t{8} << 30);
  for (const place::PolicyEntry& entry : place::policies()) {
    const auto policy = entry.create();
    for (const std::int64_t gpus : {1, 2}) {
      request.gpus = gpus;
      ::require_sound(*policy, request, *server);
    }
  }
  return true;
}

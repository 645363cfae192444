// Which room may include which: the one direction of the house, as docs/house.md prints it.
#pragma once

#include <map>
#include <set>
#include <string>

namespace gpumem::architecture {

using Names = std::set<std::string>;

/// Room -> rooms it may include.
inline const std::map<std::string, Names> kArrows = {
    {"core", {}},
    {"model", {"core"}},
    {"device", {"core"}},
    {"architectures", {"core", "model"}},
    {"summary", {"core", "model", "architectures"}},
    {"ops", {"core", "model"}},
    {"connect", {"core", "model", "architectures", "ops"}},
    {"parallel", {"core", "model", "ops", "connect"}},
    {"plan", {"core", "model", "ops", "connect", "parallel"}},
    {"adapt", {"core", "model", "ops", "connect"}},
    {"record", {"core", "model", "ops", "plan"}},
    {"analysis", {"core", "model", "ops", "connect", "adapt", "parallel", "plan", "record", "device"}},
    {"ml", {"core", "model", "connect", "device", "analysis"}},
    {"estimate", {"core", "model", "ops", "connect", "adapt", "ml", "parallel", "plan", "device", "analysis"}},
    {"utilisation", {"core", "model", "ml", "parallel", "plan", "device", "analysis"}},
    {"place", {"core", "model", "device", "estimate", "utilisation"}},
    {"request", {"core", "device", "estimate", "place"}},
    {"monitor", {"core", "device", "place", "utilisation"}},
    {"search",
     {"core", "model", "ops", "connect", "adapt", "parallel", "plan", "device", "analysis", "estimate", "utilisation"}},
    {"serve", {"core", "model", "ops", "device", "estimate", "architectures"}},
    {"job", {"core", "model"}},
    {"posttrain",
     {"core", "model", "ops", "adapt", "parallel", "plan", "device", "analysis", "estimate", "serve", "job"}},
    {"session",
     {"core", "model", "ops", "summary", "device", "analysis", "estimate", "utilisation", "place", "request", "search",
      "serve", "posttrain", "job"}},
};

}  // namespace gpumem::architecture

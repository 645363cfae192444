#include "event.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "fields.hpp"

namespace gpumem::launcher {

namespace {

using Json = nlohmann::ordered_json;
using core::JsonValue;

constexpr std::array<std::string_view, 6> kEndings = {"done", "failed", "out-of-memory", "cancelled", "left", "gone"};

// {"crc32":"1a2b3c4d","event":...}
constexpr std::string_view kBegin = "{\"crc32\":\"";
constexpr std::string_view kMiddle = "\",\"event\":";
constexpr std::size_t kDigits = 8;
constexpr std::size_t kBodyAt = kBegin.size() + kDigits + kMiddle.size();

std::string checksum(std::string_view body) {
  const uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  std::array<char, kDigits + 1> text{};
  std::snprintf(text.data(), text.size(), "%08lx", sum & 0xFFFFFFFFUL);
  return text.data();
}

Json json_of(const std::optional<core::Bytes>& bytes) { return bytes ? Json(bytes->count()) : Json(nullptr); }

Json json_of(const Process& process) { return {{"pid", process.pid}, {"started", process.started}}; }

Json json_of(const Asked& asked) {
  return {{"gpus", asked.gpus},   {"memory_bytes", json_of(asked.memory)}, {"alone_bytes", json_of(asked.alone)},
          {"smact", asked.smact}, {"exclusive", asked.exclusive},          {"connected", asked.connected}};
}

Json json_of(const Terms& terms) {
  const place::Conditions& conditions = terms.conditions;
  return {{"policy", terms.policy},
          {"smact_cap", conditions.smact_cap ? Json(*conditions.smact_cap) : Json(nullptr)},
          {"free_floor_bytes", conditions.free_floor.count()},
          {"idle_first", conditions.idle_first},
          {"settle_s", terms.settle_s}};
}

/// Adds the kind of the event, and the fields of that kind.
struct Writer {
  Json& json;

  void operator()(const Opened& opened) const {
    json["kind"] = "queue";
    json["format"] = kQueueFormat;
    json["version"] = kQueueVersion;
    json["next"] = opened.next;
    json["turn"] = opened.turn;
  }
  void operator()(const Joined& joined) const {
    json["kind"] = "join";
    json["name"] = joined.name;
    json["user"] = joined.user;
    json["launcher"] = json_of(joined.launcher);
    json["boot"] = joined.boot;
    json["asks"] = json_of(joined.asked);
    json["terms"] = json_of(joined.terms);
    json["failures"] = joined.failures;
  }
  void operator()(const Started& started) const {
    json["kind"] = "start";
    json["leader"] = json_of(started.leader);
    json["promises"] = Json::array();
    for (const Promise& promise : started.promises) {
      json["promises"].push_back({{"gpu", promise.gpu}, {"memory_bytes", promise.memory.count()}});
    }
    json["turn"] = started.turn;
  }
  void operator()(const Recovers& recovers) const {
    json["kind"] = "recover";
    json["asks"] = json_of(recovers.asked);
    json["failures"] = recovers.failures;
  }
  void operator()(const Ended& ended) const {
    json["kind"] = "end";
    json["ending"] = to_string(ended.ending);
    json["exit_code"] = ended.exit_code;
  }
  void operator()(const Cancelled& cancelled) const {
    json["kind"] = "cancel";
    json["user"] = cancelled.user;
  }
};

/// Reads an object with a function, and keeps its first fault in the fields around it.
template <typename Value, typename Read>
Value inside(Fields& fields, std::string_view key, const Read& read) {
  Value value{};
  const JsonValue* json = fields.object(key);
  if (json == nullptr) return value;
  Fields inner(*json);
  value = read(inner);
  const core::Status whole = inner.finish();
  if (!whole) fields.refuse(key, core::to_string(whole.error()));
  return value;
}

Process process_from(Fields& fields, std::string_view key) {
  return inside<Process>(fields, key, [](Fields& inner) {
    Process process;
    process.pid = inner.whole("pid");
    process.started = inner.whole("started");
    return process;
  });
}

Asked asked_from(Fields& fields) {
  return inside<Asked>(fields, "asks", [](Fields& inner) {
    Asked asked;
    asked.gpus = inner.whole("gpus");
    if (asked.gpus == 0) inner.refuse("gpus", "must be 1 or more");
    asked.memory = inner.bytes_or_null("memory_bytes");
    asked.alone = inner.bytes_or_null("alone_bytes");
    asked.smact = inner.number("smact");
    if (asked.smact > 1.0) inner.refuse("smact", "must be a share from 0 to 1");
    asked.exclusive = inner.flag("exclusive");
    asked.connected = inner.flag("connected");
    return asked;
  });
}

Terms terms_from(Fields& fields) {
  return inside<Terms>(fields, "terms", [](Fields& inner) {
    Terms terms;
    terms.policy = inner.text("policy");
    terms.conditions.smact_cap = inner.number_or_null("smact_cap");
    terms.conditions.free_floor = inner.bytes("free_floor_bytes");
    terms.conditions.idle_first = inner.flag("idle_first");
    terms.settle_s = inner.number("settle_s");
    return terms;
  });
}

Opened opened_from(Fields& fields) {
  if (fields.text("format") != kQueueFormat) fields.refuse("format", "is not " + std::string(kQueueFormat));
  if (fields.whole("version") != kQueueVersion) {
    fields.refuse("version", "is not " + std::to_string(kQueueVersion) + ", the one that this gpumem knows");
  }
  Opened opened;
  opened.next = fields.whole("next");
  opened.turn = fields.whole("turn");
  if (opened.next == 0) fields.refuse("next", "must be 1 or more");
  return opened;
}

Joined joined_from(Fields& fields) {
  Joined joined;
  joined.name = fields.text("name");
  joined.user = fields.whole("user");
  joined.launcher = process_from(fields, "launcher");
  joined.boot = fields.text("boot");
  joined.asked = asked_from(fields);
  joined.terms = terms_from(fields);
  joined.failures = fields.whole("failures");
  return joined;
}

std::vector<Promise> promises_from(Fields& fields) {
  std::vector<Promise> promises;
  const JsonValue* list = fields.list("promises");
  if (list == nullptr) return promises;
  for (const JsonValue& item : list->items()) {
    Fields inner(item);
    Promise promise;
    promise.gpu = inner.text("gpu");
    promise.memory = inner.bytes("memory_bytes");
    const core::Status whole = inner.finish();
    if (!whole) fields.refuse("promises", core::to_string(whole.error()));
    promises.push_back(std::move(promise));
  }
  if (promises.empty()) fields.refuse("promises", "must name a GPU");
  return promises;
}

Started started_from(Fields& fields) {
  Started started;
  started.leader = process_from(fields, "leader");
  started.promises = promises_from(fields);
  started.turn = fields.whole("turn");
  return started;
}

Recovers recovers_from(Fields& fields) {
  Recovers recovers;
  recovers.asked = asked_from(fields);
  recovers.failures = fields.whole("failures");
  if (recovers.failures == 0) fields.refuse("failures", "must be 1 or more");
  return recovers;
}

Ended ended_from(Fields& fields) {
  Ended ended;
  const std::string ending = fields.text("ending");
  const auto* const found = std::find(kEndings.begin(), kEndings.end(), ending);
  if (found == kEndings.end()) fields.refuse("ending", "is " + core::quoted(ending) + ", which is not an ending");
  else ended.ending = static_cast<Ending>(found - kEndings.begin());
  ended.exit_code = fields.whole("exit_code");
  return ended;
}

decltype(Event::what) what_from(Fields& fields) {
  const std::string kind = fields.text("kind");
  if (kind == "queue") return opened_from(fields);
  if (kind == "join") return joined_from(fields);
  if (kind == "start") return started_from(fields);
  if (kind == "recover") return recovers_from(fields);
  if (kind == "end") return ended_from(fields);
  if (kind == "cancel") return Cancelled{fields.whole("user")};
  fields.refuse("kind", "is " + core::quoted(kind) + ", which is not a kind of event");
  return Opened{};
}

}  // namespace

std::string_view to_string(Ending ending) { return kEndings.at(static_cast<std::size_t>(ending)); }

place::Request request_of(const Asked& asked, std::string_view id) {
  return {id, asked.gpus, asked.memory, asked.alone, asked.smact, asked.exclusive, asked.connected};
}

Asked asked_of(const place::Request& request) {
  return {request.gpus, request.memory, request.alone, request.smact, request.exclusive, request.connected};
}

std::string line_of(const Event& event) {
  Json json = {{"job", event.job}, {"at", event.at}};
  std::visit(Writer{json}, event.what);
  return framed(json.dump(-1, ' ', true, Json::error_handler_t::replace)) + "\n";
}

std::string framed(std::string_view body) {
  std::string line(kBegin);
  line.append(checksum(body)).append(kMiddle).append(body).append("}");
  return line;
}

bool is_whole(std::string_view line) {
  if (line.size() <= kBodyAt || !line.starts_with(kBegin) || line.back() != '}') return false;
  if (line.substr(kBegin.size() + kDigits, kMiddle.size()) != kMiddle) return false;
  return line.substr(kBegin.size(), kDigits) == checksum(line.substr(kBodyAt, line.size() - kBodyAt - 1));
}

core::Result<Event> parse_event(std::string_view line) {
  const std::string_view body = line.substr(kBodyAt, line.size() - kBodyAt - 1);
  const auto document = core::JsonDocument::parse(body);
  if (!document) return document.error();
  Fields fields(document->root());
  // Field by field: GCC 12 takes the variant of a braced Event for uninitialised.
  Event event;
  event.job = fields.whole("job");
  event.at = fields.number("at");
  event.what = what_from(fields);
  const core::Status whole = fields.finish();
  if (!whole) return whole.error();
  return event;
}

}  // namespace gpumem::launcher

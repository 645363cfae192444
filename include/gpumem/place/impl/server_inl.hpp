#pragma once

#include "gpumem/place/server.hpp"

#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "gpumem/core/bytes.hpp"
#include "gpumem/core/json.hpp"

namespace gpumem::place {

namespace server_detail {

GPUMEM_INLINE core::Error invalid(std::string message) {
  return {core::ErrorCode::invalid_argument, std::move(message), {}};
}

/// False for what is not a number, too.
GPUMEM_INLINE bool is_share(double value) { return value >= 0.0 && value <= 1.0; }

GPUMEM_INLINE core::Status validate(const ServerGpu& gpu) {
  const std::string name = "GPU " + core::quoted(gpu.id);
  if (gpu.id.empty()) return invalid("a GPU has no id");
  if (gpu.total.count() <= 0) return invalid(name + " has no memory");
  if (gpu.used.count() < 0) return invalid(name + " uses a negative number of bytes");
  if (!is_share(gpu.smact)) return invalid(name + " has an SM activity that is not between 0 and 1");
  return core::Done{};
}

}  // namespace server_detail

GPUMEM_INLINE const PlacedJob* PlacedJobs::find(std::string_view id) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const PlacedJob& job) { return job.id == id; });
  return found == jobs_.end() ? nullptr : &*found;
}

GPUMEM_INLINE core::Status PlacedJobs::add(PlacedJob job) {
  const auto refuse = [&](const std::string& why) {
    return server_detail::invalid("job " + core::quoted(job.id) + " " + why);
  };
  if (job.id.empty()) return server_detail::invalid("a job has no id");
  if (job.memory.count() < 0) return refuse("takes a negative number of bytes");
  if (!server_detail::is_share(job.smact)) return refuse("has an SM activity that is not between 0 and 1");
  if (find(job.id) != nullptr) return refuse("is on this GPU already");
  if (exclusive_) return refuse("cannot share this GPU: the job there must have it to itself");
  if (job.exclusive && !jobs_.empty()) return refuse("must have its GPU to itself; this GPU has another job");
  const auto sum = (core::Checked(memory_.count()) + core::Checked(job.memory.count())).value();
  if (!sum) {
    core::Error error = refuse("makes the jobs of its GPU larger than 64 bits can count");
    error.code = core::ErrorCode::overflow;
    return error;
  }
  memory_ = core::Bytes(*sum);
  exclusive_ = job.exclusive;
  jobs_.push_back(std::move(job));
  return core::Done{};
}

GPUMEM_INLINE bool PlacedJobs::remove(std::string_view id) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const PlacedJob& job) { return job.id == id; });
  if (found == jobs_.end()) return false;
  memory_ = core::Bytes(memory_.count() - found->memory.count());
  if (found->exclusive) exclusive_ = false;
  jobs_.erase(found);
  return true;
}

GPUMEM_INLINE core::Status validate(const Server& server) {
  if (server.gpus.empty()) return server_detail::invalid("the server has no GPUs");
  std::vector<std::string_view> ids;
  ids.reserve(server.gpus.size());
  for (const ServerGpu& gpu : server.gpus) {
    const core::Status valid = server_detail::validate(gpu);
    if (!valid) return valid.error();
    ids.push_back(gpu.id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) return server_detail::invalid("two GPUs have the id " + core::quoted(*twice));
  return core::Done{};
}

namespace server_json_detail {

using core::JsonValue;
using Kind = JsonValue::Kind;

using core::malformed;

GPUMEM_INLINE core::Status read_text(const JsonValue& json, std::string& to) {
  if (!json.is(Kind::text)) return malformed("must be text");
  to = json.text();
  return core::Done{};
}

GPUMEM_INLINE core::Status read_flag(const JsonValue& json, bool& to) {
  if (!json.is(Kind::boolean)) return malformed("must be true or false");
  to = json.boolean();
  return core::Done{};
}

GPUMEM_INLINE core::Status read_source(const JsonValue& json, std::string& to) {
  if (!json.is("dcgm") && !json.is("gpm") && !json.is("utilisation")) {
    return malformed("must be \"dcgm\", \"gpm\" or \"utilisation\"");
  }
  to = json.text();
  return core::Done{};
}

GPUMEM_INLINE core::Status read_share(const JsonValue& json, double& to) {
  const bool whole = json.is(Kind::integer);
  if (!whole && !json.is(Kind::real)) return malformed("must be a share from 0 to 1");
  to = whole ? static_cast<double>(json.integer()) : json.real();
  if (!(to >= 0.0 && to <= 1.0)) return malformed("must be a share from 0 to 1");
  return core::Done{};
}

/// A figure that may be in MiB or in bytes, once.
class MemoryField {
 public:
  MemoryField(std::string name) : name_(std::move(name)) {}  // NOLINT: a name converts

  /// Nothing if the field is another one.
  [[nodiscard]] std::optional<core::Status> read(const JsonValue& json) {
    const bool mib = json.key() == name_ + "_mib";
    if (!mib && json.key() != name_ + "_bytes") return std::nullopt;
    if (value_) return malformed("is given twice: in MiB and in bytes");
    constexpr std::int64_t kMiB = std::int64_t{1} << 20;
    const std::int64_t unit = mib ? kMiB : 1;
    if (!json.is(Kind::integer) || json.integer() < 0) return malformed("must be a whole number, 0 or more");
    if (json.integer() > INT64_MAX / unit) return malformed("does not fit 64 bits");
    value_ = core::Bytes(json.integer() * unit);
    return core::Done{};
  }

  [[nodiscard]] const std::optional<core::Bytes>& value() const { return value_; }

 private:
  std::string name_;
  std::optional<core::Bytes> value_;
};

GPUMEM_INLINE core::Result<PlacedJob> job_from(const JsonValue& json) {
  if (!json.is(Kind::object)) return malformed("must be an object");
  PlacedJob job;
  MemoryField memory("memory");
  for (const JsonValue& item : json.items()) {
    core::Status status = core::Done{};
    if (item.key() == "id") {
      status = read_text(item, job.id);
    } else if (item.key() == "smact") {
      status = read_share(item, job.smact);
    } else if (item.key() == "exclusive") {
      status = read_flag(item, job.exclusive);
    } else {
      status = memory.read(item).value_or(
          malformed("is not a field of a job; those are id, memory_mib or memory_bytes, smact, exclusive"));
    }
    if (!status) return core::below(item.key(), std::move(status.error()));
  }
  job.memory = memory.value().value_or(core::Bytes());
  return job;
}

/// Reads GPUs; a profile that many of them name is looked up once.
class GpuReader {
 public:
  explicit GpuReader(const FindProfile& find_profile) : find_profile_(find_profile) {}

  core::Result<ServerGpu> read(const JsonValue& json) {
    if (!json.is(Kind::object)) return malformed("must be an object");
    ServerGpu gpu;
    MemoryField total("total");
    MemoryField used("used");
    for (const JsonValue& item : json.items()) {
      core::Status status = read_field(item, gpu, total, used);
      if (!status) return core::below(item.key(), std::move(status.error()));
    }
    gpu.used = used.value().value_or(core::Bytes());
    if (total.value()) {
      gpu.total = *total.value();
    } else if (gpu.profile.empty()) {
      return malformed("has neither a profile nor total_mib");
    }
    return gpu;
  }

 private:
  core::Status read_field(const JsonValue& item, ServerGpu& gpu, MemoryField& total, MemoryField& used) {
    if (item.key() == "id") return read_text(item, gpu.id);
    if (item.key() == "profile") return read_profile(item, gpu);
    if (item.key() == "smact") return read_share(item, gpu.smact);
    if (item.key() == "smact_source") return read_source(item, gpu.smact_source);
    if (item.key() == "jobs") return read_jobs(item, gpu.jobs);
    if (auto read = total.read(item)) return *std::move(read);
    if (auto read = used.read(item)) return *std::move(read);
    return malformed("is not a field of a GPU; those are id, profile, total_mib, used_mib, smact, smact_source, jobs");
  }

  core::Status read_profile(const JsonValue& item, ServerGpu& gpu) {
    core::Status status = read_text(item, gpu.profile);
    if (!status) return status;
    auto known = profiles_.find(gpu.profile);
    if (known == profiles_.end()) {
      core::Result<device::GpuProfile> profile = find_profile_(gpu.profile);
      if (!profile) return std::move(profile.error());
      known = profiles_.emplace(gpu.profile, profile->capacity()).first;
    }
    gpu.total = known->second;
    return core::Done{};
  }

  static core::Status read_jobs(const JsonValue& list, PlacedJobs& jobs) {
    if (!list.is(Kind::list)) return malformed("must be a list");
    std::size_t index = 0;
    for (const JsonValue& item : list.items()) {
      core::Result<PlacedJob> job = job_from(item);
      if (!job) return core::below(index, std::move(job.error()));
      core::Status added = jobs.add(*std::move(job));
      if (!added) {
        added.error().code = core::ErrorCode::malformed_input;
        return core::below(index, std::move(added.error()));
      }
      ++index;
    }
    return core::Done{};
  }

  const FindProfile& find_profile_;
  std::map<std::string, core::Bytes> profiles_;
};

GPUMEM_INLINE core::Status read_gpus(const JsonValue& list, const FindProfile& find_profile, Server& server) {
  if (!list.is(Kind::list)) return malformed("must be a list");
  GpuReader reader(find_profile);
  server.gpus.reserve(list.size());
  for (const JsonValue& item : list.items()) {
    core::Result<ServerGpu> gpu = reader.read(item);
    if (!gpu) return core::below(server.gpus.size(), std::move(gpu.error()));
    server.gpus.push_back(*std::move(gpu));
  }
  return core::Done{};
}

GPUMEM_INLINE core::Result<Server> server_from(const JsonValue& json, const FindProfile& find_profile) {
  if (!json.is(Kind::object)) return malformed("must hold one JSON object");
  Server server;
  bool format = false;
  bool version = false;
  for (const JsonValue& item : json.items()) {
    core::Status status = core::Done{};
    if (item.key() == "format") {
      format = item.is("gpumem-server");
    } else if (item.key() == "version") {
      version = item.is(1);
    } else if (item.key() == "gpus") {
      status = read_gpus(item, find_profile, server);
    } else {
      status = malformed("is not a field of a server; those are format, version, gpus");
    }
    if (!status) return core::below(item.key(), std::move(status.error()));
  }
  if (!format) return core::below("format", malformed("must be \"gpumem-server\""));
  if (!version) return core::below("version", malformed("must be 1"));
  core::Status valid = validate(server);
  if (!valid) {
    valid.error().code = core::ErrorCode::malformed_input;
    return core::below("gpus", std::move(valid.error()));
  }
  return server;
}

using Json = nlohmann::ordered_json;

GPUMEM_INLINE double four_digits(double share) { return std::round(share * 1e4) / 1e4; }

GPUMEM_INLINE Json written(const PlacedJob& job) {
  return {{"id", job.id},
          {"memory_bytes", job.memory.count()},
          {"smact", four_digits(job.smact)},
          {"exclusive", job.exclusive}};
}

GPUMEM_INLINE Json written(const ServerGpu& gpu) {
  Json json = {{"id", gpu.id}};
  if (!gpu.profile.empty()) json["profile"] = gpu.profile;
  json["total_bytes"] = gpu.total.count();
  json["used_bytes"] = gpu.used.count();
  json["smact"] = four_digits(gpu.smact);
  if (!gpu.smact_source.empty()) json["smact_source"] = gpu.smact_source;
  json["jobs"] = Json::array();
  for (const PlacedJob& job : gpu.jobs) json["jobs"].push_back(written(job));
  return json;
}

}  // namespace server_json_detail

GPUMEM_INLINE std::string to_json(const Server& server) {
  using server_json_detail::Json;
  std::string text = "{\"format\": \"gpumem-server\", \"version\": 1,\n \"gpus\": [";
  std::string_view between;
  for (const ServerGpu& gpu : server.gpus) {
    text += between;
    text += server_json_detail::written(gpu).dump(-1, ' ', false, Json::error_handler_t::replace);
    between = ",\n          ";
  }
  return text + "]}\n";
}

GPUMEM_INLINE core::Result<Server> parse_server(std::string_view json, std::string_view file,
                                                const FindProfile& find_profile) {
  const auto document = core::JsonDocument::parse(json);
  if (!document) return core::Error(document.error()).in_file(file);
  core::Result<Server> server = server_json_detail::server_from(document->root(), find_profile);
  if (!server) {
    // The error of a profile names its own file, which this one only mentions.
    core::Error error = std::move(server.error());
    if (!file.empty() && error.place.file != file && !error.place.file.empty()) {
      error.message = error.place.file + ": " + error.message;
      error.place.file.clear();
    }
    return std::move(error).in_file(file);
  }
  return server;
}

}  // namespace gpumem::place

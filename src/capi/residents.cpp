#include "residents.hpp"

#include <algorithm>

namespace gpumem::capi {

namespace {

/// Destroyed when the process ends or the library is unloaded: nothing is left behind.
struct Residents {
  std::vector<Resident<GpuProfile>> gpus{device::builtin_profiles().size()};
  std::vector<Resident<Estimator>> estimators{estimate::estimators().size()};
};

Residents& residents() {
  static Residents all;
  return all;
}

Result<const GpuProfile*> builtin_gpu(std::size_t index) {
  Resident<GpuProfile>& resident = residents().gpus[index];
  if (const GpuProfile* known = resident.get()) return known;
  const device::BuiltinProfile& builtin = device::builtin_profiles()[index];
  Result<GpuProfile> profile = device::parse_profile(builtin.json, builtin.name);
  if (!profile) return profile.error();
  return resident.keep(std::make_unique<const GpuProfile>(*std::move(profile)));
}

bool equal(std::string_view lower, std::string_view any) {
  const auto same = [](char left, char right) { return left == (right >= 'A' && right <= 'Z' ? right + 32 : right); };
  return std::equal(lower.begin(), lower.end(), any.begin(), any.end(), same);
}

}  // namespace

Result<Lent<GpuProfile>> gpu_of(const std::string& name) {
  const auto builtins = device::builtin_profiles();
  for (std::size_t index = 0; index < builtins.size(); ++index) {
    if (!equal(builtins[index].name, name)) continue;
    const Result<const GpuProfile*> profile = builtin_gpu(index);
    if (!profile) return profile.error();
    return Lent<GpuProfile>(*profile);
  }
  const bool path = name.find('/') != std::string::npos || name.ends_with(".json");
  for (std::size_t index = 0; index < builtins.size() && !path; ++index) {
    const Result<const GpuProfile*> profile = builtin_gpu(index);
    if (!profile) return profile.error();
    const auto& aliases = (*profile)->aliases;
    const auto known = [&](const std::string& alias) { return equal(alias, name); };
    if (std::any_of(aliases.begin(), aliases.end(), known)) return Lent<GpuProfile>(*profile);
  }
  Result<GpuProfile> own = find_profile(name);
  if (!own) return own.error();
  return Lent<GpuProfile>(std::make_unique<const GpuProfile>(*std::move(own)));
}

Result<Lent<Estimator>> estimator_of(const std::string& name, const std::string& alloc_conf, const std::string& model) {
  const Result<device::AllocatorOptions> allocator = device::parse_allocator_options(alloc_conf);
  if (!allocator) return allocator.error();
  const auto entries = estimate::estimators();
  for (std::size_t index = 0; index < entries.size() && alloc_conf.empty() && model.empty(); ++index) {
    if (entries[index].name != name) continue;
    Resident<Estimator>& resident = residents().estimators[index];
    if (const Estimator* known = resident.get()) return Lent<Estimator>(known);
    Result<std::unique_ptr<Estimator>> made = entries[index].create({});
    if (!made) return made.error();
    return Lent<Estimator>(resident.keep(*std::move(made)));
  }
  Result<std::unique_ptr<Estimator>> made = make_estimator(name, {*allocator, model});
  if (!made) return made.error();
  return Lent<Estimator>(std::unique_ptr<const Estimator>(*std::move(made)));
}

}  // namespace gpumem::capi

#include <gpumem/all.hpp>

std::int64_t parameters_of(const char* path) {
  const auto model = gpumem::read_summary(path);
  return model ? model->parameters() : 0;
}

bool fits(const char* path) {
  auto model = gpumem::read_summary(path);
  const auto gpu = gpumem::find_profile("t4-16gb");
  if (!model || !gpu) return false;
  const auto estimate = gpumem::estimate::Horus().estimate({*std::move(model), 1}, *gpu);
  return estimate && estimate->fits && !gpumem::ops::catalogue().empty();
}

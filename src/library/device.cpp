// The bodies of device/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/device/impl/allocation_trace_inl.hpp"
#include "gpumem/device/impl/allocator_options_inl.hpp"
#include "gpumem/device/impl/caching_allocator_inl.hpp"
#include "gpumem/device/impl/gpu_profile_inl.hpp"
#include "gpumem/device/impl/workspace_inl.hpp"

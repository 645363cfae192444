// The bodies of monitor/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/monitor/impl/nvml_activity_inl.hpp"
#include "gpumem/monitor/impl/nvml_inl.hpp"

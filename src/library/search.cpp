// The bodies of search/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/search/impl/block_work_bound_inl.hpp"
#include "gpumem/search/impl/block_work_inl.hpp"
#include "gpumem/search/impl/find_layouts_inl.hpp"
#include "gpumem/search/impl/frameworks_inl.hpp"
#include "gpumem/search/impl/layout_space_inl.hpp"
#include "gpumem/search/impl/layout_time_inl.hpp"

// The bodies of core/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/core/impl/bytes_inl.hpp"
#include "gpumem/core/impl/csv_inl.hpp"
#include "gpumem/core/impl/file_inl.hpp"
#include "gpumem/core/impl/json_inl.hpp"
#include "gpumem/core/impl/result_inl.hpp"

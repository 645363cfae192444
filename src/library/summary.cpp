// The bodies of summary/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/summary/impl/formats_inl.hpp"
#include "gpumem/summary/impl/graph_json_inl.hpp"
#include "gpumem/summary/impl/graph_json_values_inl.hpp"
#include "gpumem/summary/impl/model_folder_inl.hpp"
#include "gpumem/summary/impl/model_folder_published_inl.hpp"

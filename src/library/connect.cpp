// The bodies of connect/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/connect/impl/block_rules_inl.hpp"
#include "gpumem/connect/impl/connect_further_tokens_inl.hpp"
#include "gpumem/connect/impl/connect_inl.hpp"
#include "gpumem/connect/impl/graph_copy_inl.hpp"
#include "gpumem/connect/impl/repeated_blocks_inl.hpp"
#include "gpumem/connect/impl/wiring_inl.hpp"
#include "gpumem/connect/impl/wiring_layers_inl.hpp"

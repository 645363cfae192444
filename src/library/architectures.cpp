// The bodies of architectures/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/architectures/impl/architecture_list_inl.hpp"
#include "gpumem/architectures/impl/architectures_inl.hpp"
#include "gpumem/architectures/impl/architectures_trees_inl.hpp"
#include "gpumem/architectures/impl/config_fields_inl.hpp"
#include "gpumem/architectures/impl/decoder_inl.hpp"
#include "gpumem/architectures/impl/denoiser_inl.hpp"
#include "gpumem/architectures/impl/dit_parts_inl.hpp"
#include "gpumem/architectures/impl/forward_inl.hpp"
#include "gpumem/architectures/impl/forward_tree_inl.hpp"
#include "gpumem/architectures/impl/vision_language_inl.hpp"

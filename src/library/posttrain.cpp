// The bodies of posttrain/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/posttrain/impl/estimate_post_training_inl.hpp"
#include "gpumem/posttrain/impl/launch_inl.hpp"
#include "gpumem/posttrain/impl/launch_keys_inl.hpp"
#include "gpumem/posttrain/impl/launch_megatron_inl.hpp"
#include "gpumem/posttrain/impl/launch_read_inl.hpp"
#include "gpumem/posttrain/impl/launch_setting_inl.hpp"
#include "gpumem/posttrain/impl/launch_words_inl.hpp"
#include "gpumem/posttrain/impl/phases_inl.hpp"
#include "gpumem/posttrain/impl/post_training_job_inl.hpp"
#include "gpumem/posttrain/impl/post_training_options_inl.hpp"
#include "gpumem/posttrain/impl/post_training_questions_inl.hpp"

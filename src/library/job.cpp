// The bodies of job/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/job/impl/job_from_inl.hpp"
#include "gpumem/job/impl/job_options_inl.hpp"
#include "gpumem/job/impl/option_columns_inl.hpp"
#include "gpumem/job/impl/option_texts_inl.hpp"
#include "gpumem/job/impl/option_words_inl.hpp"

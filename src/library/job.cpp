// The bodies of job/, compiled once.
#include "gpumem/core/config.hpp"

#include "gpumem/job/impl/job_options_inl.hpp"
#include "gpumem/job/impl/job_options_texts_inl.hpp"
#include "gpumem/job/impl/lengths_inl.hpp"

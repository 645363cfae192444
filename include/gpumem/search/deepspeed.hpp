// Input: a job under DeepSpeed's ZeRO.
// Output: DeepSpeed's row of Framework, and the job as its ds_config.json. Not modelled: its pipelines and its sequence
// parallelism (Ulysses). Checkpointing is the model's own (gradient_checkpointing_enable()), which the file does not
// say.
// Source: DeepSpeed 0.15, runtime/config.py and runtime/zero/config.py.
#pragma once

#include "gpumem/search/framework.hpp"

namespace gpumem::search {

[[nodiscard]] Framework deepspeed();

}  // namespace gpumem::search

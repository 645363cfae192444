#pragma once

#include <array>

#include "gpumem/connect/bert.hpp"
#include "gpumem/connect/distilbert.hpp"
#include "gpumem/connect/families.hpp"
#include "gpumem/connect/gpt2.hpp"
#include "gpumem/connect/gpt_neo.hpp"
#include "gpumem/connect/gpt_neox.hpp"
#include "gpumem/connect/llama.hpp"
#include "gpumem/connect/opt.hpp"
#include "gpumem/connect/t5.hpp"
#include "gpumem/connect/vit.hpp"
#include "gpumem/connect/xlnet.hpp"

namespace gpumem::connect {

GPUMEM_INLINE std::span<const Family* const> families() {
  static const std::array<const Family*, 10> kFamilies = {&bert(),  &distilbert(), &gpt2(), &gpt_neo(), &gpt_neox(),
                                                          &llama(), &opt(),        &t5(),   &vit(),     &xlnet()};
  return kFamilies;
}

}  // namespace gpumem::connect

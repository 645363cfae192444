#include "../../../src/train/card.hpp"

#include "small_recipes.hpp"

namespace gpumem::train {
namespace {

using testing::recipe_of;

constexpr std::string_view kCard = R"(# made-up: trained on 1,200 jobs of kind mlp, made up for a test

## Accuracy

By cross-validation with 3 folds: each job is predicted by a model that saw neither it nor another job of its net.

|  | jobs | right bin | at most one away | underestimated | most frequent bin |
|---|---|---|---|---|---|
| all | 1,200 | 87.5 % | 100.0 % | 6.2 % | 50.0 % |

Underestimated: predicted in a bin below the true one. The last column is the share that is right if one always predicts the most frequent bin. Of 7 runs that ran out of memory, 6 are predicted in the last bin.

The predicted bin, by the true one:

| true bin, MiB | 0 to 100 | 100 to 200 | 200 to 300 |
|---|---|---|---|
| 0 to 100 | 1 | 0 | 0 |
| 100 to 200 | 0 | 2 | 0 |
| 200 to 300 | 0 | 0 | 3 |

## Data

- `jobs.csv`: 1,200 jobs; left out: 3 that cannot be read, 1 on several GPUs
- data: made up for a test
- licence: none

## Training

```sh
gpumem-train recipe.json --data jobs.csv -o model
```

Software: gpumem 1, libtorch 2. Seed 5. The final model is trained on all jobs, for 11 epochs.

## Network

2 perceptrons, 222 weights, 3 features, each transformed as `config.json` says and standardised.
)";

TEST(Card, SaysWhatTheModelIsWorthAndWhereItComesFrom) {
  const Recipe recipe = recipe_of(testing::bins_recipe());
  Source source;
  source.name = "folder/jobs.csv";
  source.rows.resize(1200);
  source.failed = 3;
  source.several_gpus = 1;
  Score all;
  all.of = "all";
  all.rows = 1200;
  all.accuracy = 0.875;
  all.within_one = 1.0;
  all.underestimated = 0.0625;
  all.majority = 0.5;
  all.out_of_memory = 7;
  all.caught = 6;
  CardFacts facts;
  facts.recipe = &recipe;
  facts.model = &recipe.model;
  facts.scores = {all};
  facts.confusion = {{1, 0, 0}, {0, 2, 0}, {0, 0, 3}};
  facts.sources = {&source};
  facts.epochs = {12, 12, 12, 11};
  facts.command = "gpumem-train recipe.json --data jobs.csv -o model";
  facts.software = "gpumem 1, libtorch 2";
  EXPECT_EQ(card_of(facts), kCard);
}

}  // namespace
}  // namespace gpumem::train

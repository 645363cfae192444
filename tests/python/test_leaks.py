"""The memory of the process stays where it is over 100,000 calls."""

import pickle
import unittest

import gpumem
from support import VGG16, resident_bytes

CALLS = 100_000
TREE = "Sequential(\n  (0): Linear(in_features=8, out_features=8, bias=True)\n  (1): ReLU()\n)\n"


def fails(**options):
    try:
        gpumem.estimate(VGG16, **options)
    except gpumem.Error as error:
        return str(error)
    raise AssertionError("no error")


class Leaks(unittest.TestCase):
    def test_calls(self):
        small = gpumem.read_summary(text=TREE)
        large = gpumem.read_summary(VGG16)

        def once(number):
            gpumem.estimate(small, batch_size=1 + number % 64, input=(8,))
            if number % 4 == 0:
                gpumem.read_summary(text=TREE)
            if number % 10 == 0:
                fails(batch_size=0)
            if number % 100 == 0:
                made = gpumem.estimate(large, batch_size=1 + number % 64)
                pickle.loads(pickle.dumps(made)).json()
                str(gpumem.fit(small, input=(8,)))
                gpumem.gpus()

        # What allocators keep of the first calls is not a leak.
        for number in range(CALLS // 10):
            once(number)
        before = resident_bytes()
        for number in range(CALLS):
            once(number)
        grown = resident_bytes() - before
        print(f"grown by {grown / 2**20:.2f} MiB in {CALLS:,} calls")
        # 20 bytes a call would show.
        self.assertLess(grown, 2 << 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Where the generations of a Flink stream begin, whatever is lost on the way and whoever acts meanwhile.

None begins with an older state than the newest complete one, beside another one, or with nothing once there was any.
"""

from __future__ import annotations

import pytest

from tests.examples import examples
from tests.simulated.fixtures import lived
from tests.simulation.flink_lives import Broken, FlinkWorld

# Of lives of a quarter of a second: 12, and 240 in the slow tier.
_PARTS = 4


@pytest.mark.parametrize("part", range(_PARTS))
def test_each_generation_of_a_flink_stream_begins_with_the_newest_state_alone(part: int) -> None:
    for number in range(1 + part, examples(12) + 1, _PARTS):
        with lived() as life:
            world = FlinkWorld(life, number)
            try:
                world.live()
            except Broken as broken:
                pytest.fail(f"life {number}: {broken}\n" + "\n".join(world.story), pytrace=False)

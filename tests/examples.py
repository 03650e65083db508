"""How many examples a property or a simulation takes, in each Hypothesis profile."""

from __future__ import annotations

from hypothesis import settings

_HYPOTHESIS_OWN = 100


def examples(number: int) -> int:
    """Return `number`, or in the profile "deep" 20 times as many."""
    profile = settings.default
    assert profile is not None
    return number * profile.max_examples // _HYPOTHESIS_OWN

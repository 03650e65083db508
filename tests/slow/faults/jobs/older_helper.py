"""The stream of plain_rate.py with an older helper of its own, which comes first on the path and knows of no tokens."""

import runpy
import sys
import types

sys.modules["kstream_driver"] = types.ModuleType("kstream_driver", "An older helper: it has no take_tokens.")
runpy.run_path("plain_rate.py", run_name="__main__")

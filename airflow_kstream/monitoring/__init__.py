"""Files for Prometheus and Grafana, which `kstream monitoring` writes where an administrator wants them."""

from __future__ import annotations

from importlib.resources import files

# In the order in which somebody sets them up.
NAMES = ("statsd_mapping.yml", "alerts.rules.yml", "alerts.test.yml", "dashboard.json")


def text_of(name: str) -> str:
    """Return one of the files, as it is in the package."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")

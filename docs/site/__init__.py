"""The pages of the site that the code itself writes, at each build: `PAGES`, by their place.

Each is a function without arguments that returns Markdown, so that another builder than MkDocs can take them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.site import authors, commands, configuration, declarations, faces, knowledge, watching

PAGES: Mapping[str, Callable[[], str]] = {
    "reference/commands.md": commands.page_of_all,
    "reference/operators.md": faces.page_of_faces,
    "reference/declarations.md": declarations.page_of_declarations,
    "reference/settings.md": configuration.settings,
    "reference/connection.md": configuration.connection,
    "reference/events.md": watching.events,
    "reference/alerts.md": watching.alerts,
    "reference/metrics.md": watching.metrics,
    "reference/authors.md": authors.page_of_authors,
    "reference/checks.md": knowledge.checks,
    "reference/causes.md": knowledge.causes,
}
# Files beside them, which pages link.
FILES: Mapping[str, Callable[[], str]] = {"reference/stream.schema.json": declarations.schema_of_streams}
# What a page gets where it says `<!-- generated: NAME -->`.
FRAGMENTS: Mapping[str, Callable[[], str]] = {"authors": authors.table_of_authors}

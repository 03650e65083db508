"""Names that HDFS allows: anything but a colon, and a slash only between a folder and what is in it."""

from __future__ import annotations

ODD_NAMES = (
    "with space",
    " in front and behind ",
    "tab\there",
    "new\nline",
    "carriage\rreturn",
    "ünïcödé ☃ 🚀",
    "not-composed-e\u0301",
    "glob*[a-c]?{x,y}",
    "a&b<c>'\"d",
    "semi;colon%41+plus#hash?query=1",
    "back\\slash",
    "...",
    "a 5 bytes, replicated= replication=1, 1 block(s), OPENFORWRITE",
    "' is HEALTHY",
    "folder\n.with/file\n/in it",
)

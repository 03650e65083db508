"""What programs print without a logger as they fail: shells, the tools that they call, other languages' runtimes.

Each is a regex of the part that both engines share, for the beginning of a line.
"""

from __future__ import annotations

# As they name themselves; a class of Java has dots and no slash.
_PROGRAM = r"(?:-?[a-z][a-z0-9_+-]*|[\w.+-]*/[\w.+/-]*|[\w+-]+\.(?:sh|bash|py|pl))"
# strerror(3), and what shells say instead.
_ERRORS = (
    "No such file or directory", "Permission denied", "No space left on device", "Disk quota exceeded",
    "Read-only file system", "Input/output error", "Operation not permitted", "Cannot allocate memory",
    "Resource temporarily unavailable", "Too many open files", "Connection refused", "Connection timed out",
    "No route to host", "Stale file handle", "Exec format error", "Argument list too long", "not found",
)  # fmt: skip
# strsignal(3) of those that end a process.
_SIGNALS = (
    "Terminated", "Killed", "Aborted", "Bus error", "Segmentation fault", "Floating point exception",
    "Illegal instruction", "Hangup", "Abort trap: 6", "Trace/breakpoint trap", "Bad system call",
    "File size limit exceeded", "CPU time limit exceeded",
)  # fmt: skip
PRINTED = (
    *(rf"(?:{_PROGRAM}: (?:.{{0,300}}: )?)?{error}\r?$" for error in _ERRORS),
    *(rf"{signal}(?: \(core dumped\))?\r?$" for signal in _SIGNALS),
    rf"{_PROGRAM}: line [0-9]+: ",
    rf"{_PROGRAM}: cannot ",
    r"zsh: command not found: ",
    r"fatal: ",
    r"npm ERR! ",
    r"make(?:\[[0-9]+\])?: \*\*\* ",
    r"Unhandled exception",
    r"Uncaught ",
    r"terminate called ",
    r"Error: ",
    r"Timed out waiting ",
    r"(?:Command|Process|Script|Job|Task) .{0,200}exited with (?:(?:exit )?(?:code|status)|non-zero)",
    r"Exit code:? [1-9]",
    r"exit status:? [1-9]",
    r"exited with (?:code|status):? [1-9]",
    r"(?:Job|Task|Build|Step|Query|Load|Command) failed\b",
    r"BUILD FAILED",
    *(rf"[\w./+:-]+: {word}: " for word in ("error", "ERROR", "fatal", "FATAL", "fatal error")),
    # java.util.logging's level in German, in French and Spanish, in Japanese.
    "SCHWERWIEGEND: ",
    "GRAVE: ",
    "重大: ",
    # logrus on a terminal, with the seconds since its start.
    r"ERRO\[[0-9]",
    r"FATA\[[0-9]",
    # .NET's console: the message is on the next line.
    r"fail: [\w.]+\[[0-9]",
    r"crit: [\w.]+\[[0-9]",
)

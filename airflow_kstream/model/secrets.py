"""Secrets: references to them, the settings that hold one in clear, and how to show them.

A declaration refers to the place of a secret and never contains it, so that it may be stored in Git, in Airflow's
database and on HDFS. Therefore anything that looks like a secret in clear is refused. The words of a setting's key
decide: `fs.s3a.session.token` and `keyStorePassword` are secrets, `sasl.token.mechanism`, `password.interval` and
`tokenizer` are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Any

from pydantic import ConfigDict

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.printable import without_passwords

MASK = "***"
_HOW = (
    "write {secret: conn:ID} for the password of a connection or {secret: var:NAME} for a Variable of Airflow, "
    "{secret: env:NAME} or {secret: file:PATH} where it is submitted"
)
_HOW_ARGUMENTS = (
    f"everybody may read a process's arguments: let the job read it from its configuration, and in conf {_HOW}"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# A key with such a word is about the secret itself regardless of what follows, unless the last word says otherwise.
_STRONG = {"password", "passwords", "passwd", "passphrase", "pass", "pwd", "secret", "sas", "hmac", "pgpass"}
_STRONG_PAIRS = {
    *((first, "key") for first in ("access", "account", "api", "encryption", "private", "secret", "shared", "signing")),
    ("jaas", "config"),
    ("credential", "value"),
}
_STRONG_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "accesskey", "privatekey", "secretkey")
# These count only at the end of a key: with further words it is a setting of how tokens are made.
_WEAK = {"token", "credential", "credentials", "bearer"}
_ABOUT_IT = {
    *("algorithm", "alias", "always", "bits", "class", "count", "dir", "directory", "enabled", "endpoint", "expiry"),
    *("factory", "file", "files", "format", "id", "interval", "issuer", "iterations", "length", "lifetime", "location"),
    *("manager", "max", "mechanism", "mechanisms", "method", "min", "ms", "name", "path", "policy", "prefix"),
    *("provider", "providers", "ratio", "regex", "renewer", "required", "retries", "seconds", "service", "size"),
    *("timeout", "ttl", "type", "url", "uri", "use", "version", "wait"),
}
_SWITCH = re.compile(r"|true|false|yes|no|on|off|none|null", re.IGNORECASE)
_CHOICE = re.compile(
    r"plain|gssapi|kerberos|oauthbearer|scram-sha-(256|512)|sasl_plaintext|sasl_ssl|ssl|plaintext"
    r"|kafka|ccache|keytab|simple|basic|jks|jceks|pkcs12|pem",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9.]+ *(ms|s|m|h|d|w|[kmgt]b?)?", re.IGNORECASE)
_PATH = re.compile(r"\.{0,2}(/[\w.@+#-]+)+/?|[a-z]+://[\w./@:#-]+", re.ASCII)
_JAVA_CLASS = re.compile(r"([a-z_][a-z0-9_]*\.){2,}[A-Z][\w$]*", re.ASCII)
# A key is looked for once in each word, from its first letter on: tried at each letter, a long word of a log would take
# the square of its length. No quantifier is possessive: before 3.11.5 Python got those of groups wrong (gh-106052).
_KEY = r"(?<![\w.-])(?P<before>(?:(?![A-Za-z])[\w.-])*)(?P<key>[A-Za-z][\w.-]*)"
_PAIR = re.compile(_KEY + r"""\s*=\s*(?P<value>"[^"]*"|'[^']*'|[^\s;&,"']+)""")
# In the words of a program: by the sign between key and value, one after the other, because they nest.
_SAID = {
    sign: re.compile(
        _KEY + r"""(?P<between>["']?\s*SIGN\s*)(?P<value>"[^"]*"|'[^']*'|[^\s;&,"')}\]]+)""".replace("SIGN", sign)
    )
    for sign in "=:"
}
_IN_ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])(?:(?![a-z])[a-z0-9+.-])*[a-z][a-z0-9+.-]*://[^\s/:@]*:(?P<value>[^\s/@]+)@", re.IGNORECASE
)
# Who knows the path of one of these may post: it is all the password that there is.
_WEBHOOK = re.compile(
    r"(?P<before>https://(?:hooks\.(?:slack|slack-gov|zapier)\.com/|[\w-]+\.webhook\.office\.com/|api\.telegram\.org/bot"
    r"|(?:\w+\.)?discord(?:app)?\.com/api/webhooks/|outlook\.office\.com/webhook/))(?P<value>[^\s\"'<>]+)",
    re.IGNORECASE,
)
# Credentials outside of settings: HTTP's, a signed cookie of Hadoop's, the signature or the delegation token in a URL.
# Without the name of its header only what is long is one: `Bearer tokens` is prose.
_OF_HTTP = (
    re.compile(
        r"(?P<before>\bauthorization[\"']?\s?[:=]\s?[\"']?(?:basic|bearer|negotiate|token)\s"
        r"|\bbearer\s(?=[\w+/=.~-]{20})|\bhadoop\.auth=[\"']?)[^\s\"'<>;,]+",
        re.IGNORECASE,
    ),
    re.compile(r"(?P<before>[?&](?:delegation|sig|signature|x-(?:amz|goog)-signature)=)[^\s\"'<>&]+", re.IGNORECASE),
)
_OPTION = re.compile(r"(?<![\w-])(?P<before>--)(?P<key>[A-Za-z][\w.-]*)(?P<between>\s+)(?P<value>[^\s-]\S*)")


@dataclass(frozen=True)
class SecretRef:
    """A reference to a secret, `secret: conn:ID`. The process that submits looks it up right before the
    submission.

    `conn:ID` is the password of an Airflow connection, `var:NAME` an Airflow Variable, `env:NAME` a variable of the
    submitting process's environment, `file:PATH` the text of a file there. Raises InvalidInput: when it is none of
    these.

    Example::

        SecretRef("conn:orders")
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    secret: str

    def __post_init__(self) -> None:
        if self.kind not in {"conn", "var", "env", "file"} or not self.name:
            raise InvalidInput(f"secret names no place that is known; {_HOW}")

    @property
    def kind(self) -> str:
        return self.secret.partition(":")[0] if ":" in self.secret else ""

    @property
    def name(self) -> str:
        return self.secret.partition(":")[2]

    def __str__(self) -> str:
        return self.secret


# A setting's value: text, or a reference to a secret.
Value = str | SecretRef


def is_secret(key: str) -> bool:
    """Return True if a setting of this name holds a secret, judging by the name alone."""
    return _strength(key) > 0


def secrets_in(key: str, value: str) -> tuple[str, ...]:
    """Return the secrets that a setting holds in clear: its whole value, or parts such as a URL's password.

    The path of a webhook, such as Slack's, is one. Booleans, names of mechanisms and a login module's other options are
    not, regardless of the key.
    """
    inside = (*(match["value"] for form in (_IN_ADDRESS, _WEBHOOK) for match in form.finditer(value)), *_pairs(value))
    if inside:
        return inside
    is_login_module = _words(key)[-2:] == ["jaas", "config"]
    return () if is_login_module or _is_harmless(key, value) else (value,)


def without_secrets(text: str) -> str:
    """Mask what looks like a secret in another program's words: a URL's password, a webhook's path, a secret setting,
    a credential of HTTP.

    `password: x` is masked like `password=x`; after a colon a weaker word, such as token, may begin a sentence.
    """
    text = without_passwords(text)
    for credential in (_WEBHOOK, *_OF_HTTP):
        text = credential.sub(rf"\g<before>{MASK}", text)
    for said in (*_SAID.values(), _OPTION):
        text = said.sub(_masked, text)
    return text


def _masked(found: re.Match[str]) -> str:
    key, value = found["key"].removeprefix("-D"), found["value"].strip("\"'")
    said = ":" in found["between"] and _strength(key) < 2
    return found[0] if said or _is_harmless(key, value) else f"{found['before']}{found['key']}{found['between']}{MASK}"


def require_no_literals(conf: Mapping[str, Value], environment: Mapping[str, Value], arguments: Sequence[str]) -> None:
    """Raises InvalidInput: when a value is or has a secret in clear. The message names the place, never the secret."""
    places = [f"conf.{key}" for key, value in conf.items() if isinstance(value, str) and secrets_in(key, value)]
    places += [
        f"deploy.environment.{key}"
        for key, value in environment.items()
        if isinstance(value, str) and secrets_in(key, value)
    ]
    if places:
        raise InvalidInput(f"{', '.join(places)}: a secret in clear; {_HOW}")
    if names := tuple(_in_arguments(arguments)):
        raise InvalidInput(f"arguments: {', '.join(names)}: a secret in clear; {_HOW_ARGUMENTS}")


def require_no_literals_in(declaration: object) -> None:
    """Check plain data, as far as it has the form of a stream's declaration: it may be a template, or wrong.

    Raises InvalidInput: as `require_no_literals`.
    """
    fields = _mapping(declaration)
    environment = _mapping(fields.get("deploy")).get("environment")
    require_no_literals(_mapping(fields.get("conf")), _mapping(environment), _texts(fields.get("arguments")))


def _mapping(value: object) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else []


def _in_arguments(words: Sequence[str]) -> Iterator[str]:
    """Yield the names of options that are followed by a secret, in the same word or the next."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        name = word.lstrip("-")
        if word.startswith("-") and "=" not in word:
            if not following.startswith("-") and secrets_in(name, following):
                yield word
        elif key := next(_pair_names(word), None):
            yield key
        elif _IN_ADDRESS.search(word):
            yield "the password in an address"
        elif _WEBHOOK.search(word):
            yield "the path of a webhook"


def _pairs(text: str) -> Iterator[str]:
    for key, value in _key_values(text):
        if not _is_harmless(key, value):
            yield value


def _pair_names(text: str) -> Iterator[str]:
    for key, value in _key_values(text):
        if not _is_harmless(key, value):
            yield key


def _key_values(text: str) -> Iterator[tuple[str, str]]:
    for match in _PAIR.finditer(text):
        yield match["key"].removeprefix("-D").removeprefix("D"), match["value"].strip("\"'")


def _is_harmless(key: str, value: str) -> bool:
    """Return True if it is not a secret. A token's lifetime is a number, its file a path; a password may be either."""
    strength = _strength(key)
    if not strength or _SWITCH.fullmatch(value) or _JAVA_CLASS.fullmatch(value):
        return True
    return strength == 1 and any(setting.fullmatch(value) for setting in (_CHOICE, _NUMBER, _PATH))


@lru_cache(maxsize=4096)  # A log says the same few keys in thousands of lines.
def _strength(key: str) -> int:
    """Rate a key: 0 is not a secret; 1 has a word that counts only at the end; 2 has one that counts anywhere."""
    words = _words(key)
    if not words or words[-1] in _ABOUT_IT:
        return 0
    strong = _STRONG & set(words) or _STRONG_PAIRS & set(pairwise(words))
    if strong or any(word.endswith(_STRONG_ENDINGS) for word in words):
        return 2
    return int(words[-1] in _WEAK or words[-1].endswith("token"))


def _words(key: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(key)]

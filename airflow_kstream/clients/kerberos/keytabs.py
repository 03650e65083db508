"""Keytabs on disk, and a KDC's answers about them."""

from __future__ import annotations

import pwd
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from airflow_kstream.clients.kerberos.krb5_errors import login_result, words_of
from airflow_kstream.clients.lazy import gssapi, krb5
from airflow_kstream.clients.local.private import private_folder, write_private
from airflow_kstream.clients.local.regular_files import read_regular
from airflow_kstream.model.errors import CredentialError, InvalidInput
from airflow_kstream.model.formats.keytab import read_entries
from airflow_kstream.model.formats.ticket import ticket_key
from airflow_kstream.model.kerberos.keytab import KdcStatus, KeytabFile, KeyVersion, LoginResult

# A keytab has some hundred bytes; a file larger than this was named by mistake.
_LARGEST = 16 * 1024 * 1024


def read(path: str) -> KeytabFile:
    """Read a keytab. Raises CredentialError: when the file can't be read or is not a complete keytab."""
    tried = f"read keytab {path}"
    file = Path(path.removeprefix("FILE:"))
    try:
        content, status = read_regular(file, _LARGEST)
    except InvalidInput as error:
        raise CredentialError(error.message, tried=tried) from None
    except (OSError, ValueError) as error:
        raise CredentialError(getattr(error, "strerror", None) or str(error), tried=tried) from error
    try:
        entries = read_entries(content)
    except CredentialError as error:
        raise CredentialError(error.message, tried=tried) from None
    return KeytabFile(str(file), stat.S_IMODE(status.st_mode), _user(status.st_uid), entries)


def key_at_hand(path: str, principal: str) -> KeyVersion | None:
    """Return the principal's key in the file; None, which proves nothing, if this host has no such file or key."""
    try:
        return read(path).version(principal)
    except CredentialError:
        return None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def ask_kdc(keytab: KeytabFile, principal: str, helpers: Sequence[Path] = ()) -> KdcStatus:
    """Log in with the keytab into a temporary cache, and query what else the KDC tells. Never raises.

    `helpers` are caches with tickets of the same realm, tried for the kvno if this keytab gets none.
    """
    with private_folder() as private:
        own = private / "tickets"
        question = _Question(krb5.init_context(), principal)
        login, detail = question.log_in(keytab.path, own)
        if login is LoginResult.UNREACHABLE:
            # Each further query would wait for the same silent KDC.
            return KdcStatus(login, detail)
        # Only an answer that was decrypted tells the time.
        seconds, microseconds = krb5.get_time_offsets(question.context)
        kvno, why_not = _current_kvno(
            principal, ([own] if login is LoginResult.ACCEPTED else []) + list(helpers), private
        )
        return KdcStatus(
            login=login,
            detail=detail,
            kvno=kvno,
            kvno_unknown=why_not,
            refused_enctypes=tuple(question.refused(sorted({entry.enctype for entry in keytab.newest(principal)}))),
            salt=question.salt(),
            offset=timedelta(seconds=seconds, microseconds=microseconds) if login is LoginResult.ACCEPTED else None,
        )


@dataclass(frozen=True)
class _Question:
    """A query to the KDC as the principal itself, before it has any ticket."""

    context: krb5.Context
    principal: str

    def log_in(self, keytab: str, cache: Path) -> tuple[LoginResult, str]:
        try:
            table = krb5.kt_resolve(self.context, f"FILE:{keytab}".encode())
            options = krb5.get_init_creds_opt_alloc(self.context)
            ticket = krb5.get_init_creds_keytab(self.context, self._name(), options, table)
            store = krb5.cc_resolve(self.context, f"FILE:{cache}".encode())
            krb5.cc_initialize(self.context, store, self._name())
            krb5.cc_store_cred(self.context, store, ticket)
        except krb5.Krb5Error as error:
            return login_result(error), words_of(error)
        return LoginResult.ACCEPTED, ""

    def refused(self, enctypes: Sequence[int]) -> Iterator[int]:
        """Yield the enctypes that the KDC does not accept: probed one by one, without any secret."""
        for enctype in enctypes:
            options = krb5.get_init_creds_opt_alloc(self.context)
            krb5.get_init_creds_opt_set_etype_list(options, [enctype])
            try:
                krb5.get_etype_info(self.context, self._name(), options)
            except krb5.Krb5Error as error:
                # Any other refusal is about the principal, and the login reports it.
                if login_result(error) is LoginResult.ENCTYPES_REFUSED:
                    yield enctype

    def salt(self) -> bytes | None:
        with suppress(krb5.Krb5Error):
            return krb5.get_etype_info(self.context, self._name()).salt
        return None

    def _name(self) -> krb5.Principal:
        return krb5.parse_name_flags(self.context, self.principal.encode())


def _current_kvno(principal: str, caches: Sequence[Path], private: Path) -> tuple[int | None, str]:
    """Return the kvno of a service ticket for the principal itself, sealed with its current key; or the reason."""
    why = "no ticket of its realm is at hand"
    for number, cache in enumerate(caches):
        try:
            # A copy: the tickets of this query do not belong in anybody's cache.
            mine = private / f"asking-{number}"
            write_private(mine, cache.read_bytes())
            return _service_kvno(principal, mine)
        except gssapi.raw.misc.GSSError as error:
            why = words_of(error)
        except (OSError, CredentialError, krb5.Krb5Error) as error:
            why = str(error)
    return None, f"the KDC gives no service ticket for {principal} ({why})"


def _service_kvno(principal: str, cache: Path) -> tuple[int | None, str]:
    name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
    credentials = gssapi.Credentials(usage="initiate", store={"ccache": f"FILE:{cache}"})
    gssapi.SecurityContext(name=name, creds=credentials, usage="initiate").step()
    context = krb5.init_context()
    for ticket in krb5.cc_resolve(context, f"FILE:{cache}".encode()):
        if bytes(ticket.server.name or b"").decode() == principal:
            kvno = ticket_key(ticket.ticket).kvno
            return kvno, "" if kvno is not None else "the KDC leaves it out of its tickets"
    raise CredentialError("the ticket was not kept")

"""Takes fresh delegation tokens into a running Spark application that has no keytab.

Spark itself never replaces the tokens of such a job: HadoopDelegationTokenManager needs a keytab. Its supervisor can
make them outside and push them: it puts a credentials file into the stream's folder, and this receiver in the driver
hands it to Spark's own distribution message (CoarseGrainedClusterMessages.UpdateDelegationTokens, as Kyuubi does). The
driver and all executors use them from then on, executors that start later included.

    tokens/<n>-<id>       a Hadoop credentials file, readable for the
                          stream's user alone. Who deletes it has it:
                          this driver before it uses the tokens, or a
                          supervisor that takes them back                written by the supervisor
    push-<n>-<id>-<end>   the file is complete, and its first token ends
                          then, in seconds since 1970; 0 announces no
                          file: a test of this channel                   written by the supervisor
    applied-<n>-<id>      in use; it names the executors that were told  written here
    refused-<n>-<id>      why they are not used                          written here

The supervisor ships it with `--py-files` for `credentials: {refresh: true}`. `kstream_driver.Generation` starts it, and
so does `kstream_launcher.py`, which runs a job that knows nothing of either. It takes only what renews a token that the
driver has: of the same owner, kind and service, and younger. One of HDFS it tries before, in a login of its own: it
refuses one that its NameNode refuses. Whatever else fails says nothing about the tokens: those that the driver has
stay, and the push is tried again until it has ended. Each push is answered, by name, as soon as HDFS can be written.
Announcements, files and answers count by their owners, as claims do (kstream_driver.py). It never stops a job, whatever
HDFS does, and never logs or writes a token's bytes. It makes and renews none: NameNodes want Kerberos for that.

Works with Spark 3 and 4, in cluster and client mode, Python 3.8+.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

FOLDER = "tokens"
POLL_SECONDS = 5.0
# An executor that has its first tokens and is not registered yet misses a message; so it does with a keytab.
REPEAT_SECONDS = 25.0
APPLIED_WITHIN_SECONDS = 30.0
LONGEST_FILE = 1 << 20
_MAGIC = b"HDTS\0"
_HDFS_KIND = "HDFS_DELEGATION_TOKEN"
# Before the name of several NameNodes' filesystem, in the service of its token.
_PAIR = "ha-hdfs:"
# The next look tries again: a trial that waits for a lost server would keep later pushes waiting.
_TRIAL_CONF = {
    "dfs.client.failover.max.attempts": "3",
    "dfs.client.retry.max.attempts": "2",
    "dfs.client.retry.policy.enabled": "false",
    "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.max.retries.on.timeouts": "1",
    "ipc.client.connect.timeout": "5000",
    "ipc.client.rpc-timeout.ms": "10000",
}
_REMOTE = "org.apache.hadoop.ipc.RemoteException"
# A NameNode's word on a token that it does not know or that has ended. It says the same within a RetriableException
# while it becomes active (DelegationTokenSecretManager.retriableRetrievePassword), which refuses none.
_UNKNOWN_TOKEN = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
# Its word on a wrong password (com.sun.security.sasl.digest.DigestMD5Server). Others of this class are about servers.
_SASL, _WRONG_PASSWORD = "javax.security.sasl.SaslException", "Mismatched response"
_LONGEST_CHAIN = 10
_PUSH = re.compile(r"push-(\d{6,})-(\d+)-(\d+)")
_OF_A_PUSH = re.compile(r"(?:push|applied|refused)-(\d{6,})-.+")

log = logging.getLogger("kstream_tokens")
_lock = threading.Lock()
_serving: dict[str, Receiver] = {}


class Refused(Exception):
    """A push that this driver does not use; the message says why, and holds nothing secret."""


class NotYet(Exception):
    """Tokens that can't be used at this moment; that says nothing about them."""


class Push(NamedTuple):
    """An announced push. `until` is when its first token ends, in seconds since 1970; 0 for a test of the channel."""

    generation: int
    id: int
    until: int

    @property
    def brings_tokens(self) -> bool:
        return self.until > 0

    @property
    def has_ended(self) -> bool:
        return 0 < self.until <= time.time()

    @property
    def file(self) -> str:
        return f"{FOLDER}/{self.generation:06d}-{self.id}"

    @property
    def applied(self) -> str:
        return f"applied-{self.generation:06d}-{self.id}"

    @property
    def refused(self) -> str:
        return f"refused-{self.generation:06d}-{self.id}"


def unanswered(names: set[str], generation: int) -> list[Push]:
    """Return the pushes to this generation without an answer among these file names, oldest first."""
    found = (_PUSH.fullmatch(name) for name in names)
    pushes = sorted(Push(int(one[1]), int(one[2]), int(one[3])) for one in found if one)
    mine = (push for push in pushes if push.generation == generation)
    return [push for push in mine if not names & {push.applied, push.refused}]


def take_tokens(context: Any, folder: Any, generation: int) -> None:
    """Begin to take tokens, in a thread that does not keep the driver from ending. Once for each application.

    `folder` is kstream_driver's StateFolder of the stream.
    """
    with _lock:
        if context.applicationId not in _serving:
            _serving[context.applicationId] = Receiver(context, folder, generation)
            _serving[context.applicationId].start()


class Receiver(threading.Thread):
    """A thread that answers the pushes to one generation for as long as its SparkContext lives."""

    def __init__(self, context: Any, folder: Any, generation: int) -> None:
        super().__init__(name="kstream-tokens", daemon=True)
        self._context = context
        self._folder = folder
        self._generation = generation
        self._tokens = SparkTokens(context)
        self._trouble = ""
        self._again: tuple[float, bytes] | None = None
        # Tokens whose file this driver has deleted, to use them.
        self._taken: dict[Push, bytes] = {}
        # An answer whose name a stranger occupies can't be written.
        self._answered: set[Push] = set()

    def run(self) -> None:
        while self._context._jsc is not None:
            try:
                self.look()
                self._trouble = ""
            except Exception as error:  # HDFS, Kerberos or the JVM: the job may be healthy
                self._tell(error)
            time.sleep(POLL_SECONDS)

    def look(self) -> None:
        """Answer what was pushed since the last look, and send again what may have missed an executor.

        A driver that was away for a while finds several pushes. It uses the newest one that it does not refuse, and one
        that can't be answered now keeps no other waiting.
        """
        self._send_again()
        superseded, troubles = False, []
        names = self._folder.names(self._heeds)
        for push in (push for push in reversed(unanswered(names, self._generation)) if push not in self._answered):
            try:
                superseded = self._answer(push, superseded) or superseded
            except Exception as error:  # HDFS or the JVM: the next look tries this one again
                troubles.append(error)
        if troubles:
            raise troubles[-1]

    def _heeds(self, name: str) -> bool:
        """Return True for what announces or answers a push to this generation."""
        found = _OF_A_PUSH.fullmatch(name)
        return found is not None and int(found[1]) == self._generation

    def _answer(self, push: Push, superseded: bool) -> bool:
        """Answer a push, and return whether its tokens are used.

        Raises whatever keeps them from being used, or the answer from being written: the next look tries again.
        """
        try:
            if push.brings_tokens and superseded:
                raise Refused("newer tokens were pushed after these")
            name, answer = push.applied, self._applied(push)
        except Exception as error:
            why = _refusal(error, push)
            if why is None:
                raise
            log.warning("a push of tokens is refused: %s", why)
            name, answer = push.refused, {"why": why, **self._stamp()}
        self._folder.put(name, answer)
        self._answered.add(push)
        if push.brings_tokens and self._taken.pop(push, None) is None:
            self._folder.delete(push.file)
        return push.brings_tokens and name == push.applied

    def _applied(self, push: Push) -> dict[str, Any]:
        if not push.brings_tokens:
            return {"tokens": [], "executors": self._tokens.executors(), **self._stamp()}
        content = self._read(push)
        fresh = self._tokens.tried(content)
        self._take(push, content)
        self._tokens.use(fresh)
        self._again = time.monotonic() + REPEAT_SECONDS, fresh.content
        return {"tokens": fresh.tokens, "executors": self._tokens.executors(), **self._stamp()}

    def _take(self, push: Push, content: bytes) -> None:
        """Delete the file: a supervisor that takes tokens back cancels none whose file it does not delete itself."""
        if push not in self._taken:
            if not self._folder.delete(push.file):
                raise Refused("it was taken back while it was tried")
            self._taken[push] = content

    def _read(self, push: Push) -> bytes:
        """Return a push's credentials file. Raises Refused: when it is too long, a stranger's, or not there."""
        if push in self._taken:
            return self._taken[push]
        try:
            content: bytes = self._folder.read(push.file, LONGEST_FILE)
        except ValueError as error:
            raise Refused(str(error)) from None
        except Exception as error:  # Py4J's, which can't be named here: of Java's each has another meaning
            if next(_reasons(error), ("", ""))[0] != "java.io.FileNotFoundException":
                raise
            raise Refused(f"it was taken back: {push.file} is missing, or no file") from None
        return content

    def _stamp(self) -> dict[str, Any]:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return {"application": self._context.applicationId, "generation": self._generation, "time": now}

    def _send_again(self) -> None:
        if self._again and time.monotonic() > self._again[0]:
            content, self._again = self._again[1], None
            self._tokens.send(content)

    def _tell(self, error: Exception) -> None:
        """Log a trouble once, until it is over."""
        trouble = type(error).__name__
        if trouble != self._trouble:
            log.warning("can't take tokens from %s now: %s", self._folder, _brief(error))
        self._trouble = trouble


class Fresh(NamedTuple):
    """Tokens that may be used: what they are, what is sent for them, and whether the driver has them already."""

    tokens: list[dict[str, Any]]
    content: bytes
    known: bool


class SparkTokens:
    """The tokens of a Spark application, in its driver's JVM."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._jvm = context._jvm
        self._security = self._jvm.org.apache.hadoop.security

    def tried(self, content: bytes) -> Fresh:
        """Return these tokens, each of which its server takes; nothing uses them yet.

        Raises Refused: when one of them renews none that the driver has, or its NameNode refuses it. Raises NotYet:
        when one can't be tried now.
        """
        services = [*services_of(content)]
        fresh = self._spark().deserialize(bytearray(content))
        tokens = [self._checked(service, fresh) for service in services]
        younger = [token["service"] for token in tokens if not self._has(token)]
        for service in younger:
            self._try(fresh.getToken(self._text(service)), service)
        return Fresh(tokens, self._chosen(services, younger, fresh), known=not younger)

    def use(self, fresh: Fresh) -> None:
        """Make the driver and its executors use these tokens. Raises NotYet: when Spark does not use them in time."""
        if not fresh.known:
            self.send(fresh.content)
            self._await(fresh.tokens)

    def send(self, content: bytes) -> None:
        """Send Spark's own message: to the driver's endpoint, which tells the executors and keeps it for later ones."""
        messages = self._jvm.org.apache.spark.scheduler.cluster
        update = getattr(messages, "CoarseGrainedClusterMessages$UpdateDelegationTokens")
        self._backend().driverEndpoint().send(update(bytearray(content)))

    def executors(self) -> list[str]:
        """Return the ids of the executors that are registered now."""
        ids = str(self._backend().getExecutorIds().mkString(","))
        return sorted(filter(None, ids.split(",")))

    def _chosen(self, services: list[str], younger: list[str], fresh: Any) -> bytes:
        """Return the tokens under the names that the driver's own have; one that the driver has already as it has it.

        Its identifier says nothing of its password.
        """
        current, chosen = self._current(), self._security.Credentials()
        for service in services:
            name = self._text(self._name(current, service))
            chosen.addToken(name, fresh.getToken(self._text(service)) if service in younger else current.getToken(name))
        return bytes(self._spark().serialize(chosen))

    def _try(self, token: Any, service: str) -> None:
        """Use an HDFS token once, in a login that has no other; those of other servers are not tried.

        Raises Refused: when the NameNode refuses the token. Raises NotYet: when anything else fails.
        """
        if str(token.getKind()) != _HDFS_KIND:
            return
        authority = service[len(_PAIR) :] if service.startswith(_PAIR) else service
        try:
            self._greet_namenode(token, f"hdfs://{authority}")
        except Exception as error:
            if refuses_token(error):
                raise Refused(f"the NameNode does not take the token for {service}: {_brief(error)}") from None
            raise NotYet(f"the token for {service} can't be tried: {_brief(error)}") from None

    def _greet_namenode(self, token: Any, uri: str) -> None:
        """Ask this filesystem's NameNode, by this token alone, what it tells every login: that needs no permission."""
        login = self._security.UserGroupInformation.createRemoteUser("kstream-trial")
        login.addToken(token)
        filesystem = login.doAs(self._opening(self._jvm.java.net.URI(uri)))
        try:
            filesystem.getServerDefaults(self._jvm.org.apache.hadoop.fs.Path("/"))
        finally:
            filesystem.close()

    def _opening(self, uri: Any) -> Any:
        """Return a PrivilegedExceptionAction that opens the filesystem.

        A method handle makes one within the JVM; a Python object would be called back in a thread without the login.
        """
        conf = self._jvm.org.apache.hadoop.conf.Configuration(self._context._jsc.hadoopConfiguration())
        for key, value in _TRIAL_CONF.items():
            conf.set(key, value)
        java, a_class = self._jvm.java.lang, self._class
        filesystem = a_class("org.apache.hadoop.fs.FileSystem")
        takes = self._array(java.Class, [a_class("java.net.URI"), a_class("org.apache.hadoop.conf.Configuration")])
        method = java.invoke.MethodType.methodType(filesystem, takes)
        opening = java.invoke.MethodHandles.publicLookup().findStatic(filesystem, "newInstance", method)
        opening = java.invoke.MethodHandles.insertArguments(opening, 0, self._array(java.Object, [uri, conf]))
        action = a_class("java.security.PrivilegedExceptionAction")
        return java.invoke.MethodHandleProxies.asInterfaceInstance(action, opening)

    def _class(self, name: str) -> Any:
        return self._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)

    def _array(self, of: Any, values: list[Any]) -> Any:
        array = self._context._gateway.new_array(of, len(values))
        for at, value in enumerate(values):
            array[at] = value
        return array

    def _name(self, credentials: Any, service: str) -> str:
        """Return the name of this service's token: a KMS's is its address (LoadBalancingKMSClientProvider)."""
        if credentials.getToken(self._text(service)) is None:
            for name, token in credentials.getTokenMap().items():
                if str(token.getService()) == service:
                    return str(name)
        return service

    def _checked(self, service: str, fresh: Any) -> dict[str, Any]:
        """Return what this token is. Raises Refused: unless it renews one that the driver has."""
        new, old = self._identifier(fresh, service), self._identifier(self._current(), service)
        if old is None:
            raise Refused(f"this driver has no token for {service} that it would renew")
        if new is None:
            raise Refused(f"the token for {service} can't be read")
        if (new["kind"], new["owner"], new["real_user"]) != (old["kind"], old["owner"], old["real_user"]):
            raise Refused(
                f"the token for {service} is a {_whose(new)}, and this driver's is a {_whose(old)}: it would act as "
                "somebody else"
            )
        if new != old and (new["issued"], new["sequence_number"]) <= (old["issued"], old["sequence_number"]):
            raise Refused(f"the token for {service} is not younger than the one that this driver has")
        return new

    def _await(self, tokens: list[dict[str, Any]]) -> None:
        deadline = time.monotonic() + APPLIED_WITHIN_SECONDS
        while not all(self._has(token) for token in tokens):
            if time.monotonic() > deadline:
                raise NotYet(f"Spark took the tokens and did not use them within {APPLIED_WITHIN_SECONDS:.0f} s")
            time.sleep(0.1)

    def _has(self, token: dict[str, Any]) -> bool:
        return self._identifier(self._current(), token["service"]) == token

    def _current(self) -> Any:
        return self._security.UserGroupInformation.getCurrentUser().getCredentials()

    def _identifier(self, credentials: Any, service: str) -> dict[str, Any] | None:
        token = credentials.getToken(self._text(self._name(credentials, service)))
        identifier = token.decodeIdentifier() if token is not None else None
        if identifier is None:
            return None
        return {
            "kind": str(token.getKind()),
            "service": service,
            "owner": str(identifier.getOwner()),
            "real_user": str(identifier.getRealUser() or ""),
            "issued": int(identifier.getIssueDate()),
            "max_date": int(identifier.getMaxDate()),
            "sequence_number": int(identifier.getSequenceNumber()),
        }

    def _text(self, words: str) -> Any:
        return self._jvm.org.apache.hadoop.io.Text(words)

    def _spark(self) -> Any:
        return self._jvm.org.apache.spark.deploy.SparkHadoopUtil.get()

    def _backend(self) -> Any:
        return self._context._jsc.sc().schedulerBackend()


def services_of(content: bytes) -> Iterator[str]:
    """Yield the services of a credentials file's tokens (Credentials.readFields).

    Hadoop's reader believes each length that it finds, so this one checks them first: the JVM is the job's. Raises
    Refused: when it is no such file, has no token or anything beside tokens, or a token goes by another name than its
    service: Hadoop's clients would keep using the old one for a NameNode of a pair (HDFS-9276).
    """
    if content[: len(_MAGIC)] != _MAGIC:
        raise Refused("it is not a credentials file")
    rest = _Bytes(content, len(_MAGIC))
    count = rest.vint()
    for _ in range(count):
        alias = rest.sized()
        for _ in ("identifier", "password", "kind"):
            rest.sized()
        if rest.sized() != alias:
            raise Refused("a token's name in the credentials file is not its service")
        yield alias.decode(errors="replace")
    if not count or rest.vint() or rest.at != len(content):
        raise Refused("the credentials file has no token, or holds more than tokens")


class _Bytes:
    """Numbers and byte strings of WritableUtils, one after the other."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content = content
        self.at = at

    def vint(self) -> int:
        """Read a number that is not negative."""
        first = self.take(1)[0]
        if first < 128:
            return first
        # -113 to -120 announce one to eight bytes.
        size = 256 - 112 - first
        if not 1 <= size <= 4:
            raise Refused(f"byte {self.at - 1} of the credentials file makes no sense")
        return int.from_bytes(self.take(size), "big")

    def sized(self) -> bytes:
        return self.take(self.vint())

    def take(self, length: int) -> bytes:
        if length > len(self._content) - self.at:
            raise Refused(f"the credentials file ends within the bytes that begin at {self.at}")
        self.at += length
        return self._content[self.at - length : self.at]


def refuses_token(error: Exception) -> bool:
    """Return whether the server says by this exception of the JVM that it takes the token from nobody."""
    told = _reasons(error)
    return any(name == _UNKNOWN_TOKEN or (name == _SASL and _WRONG_PASSWORD in words) for name, words in told)


def _reasons(error: Exception) -> Iterator[tuple[str, str]]:
    """Yield class and words of the Java exception that this one brings, and of its causes.

    What a server threw is named by the server's class, which is the only sure sign: its words may quote any other.
    """
    java = getattr(error, "java_exception", None)
    for _ in range(_LONGEST_CHAIN):
        if java is None:
            return
        name = str(java.getClass().getName())
        yield (str(java.getClassName()) if name == _REMOTE else name), str(java.getMessage())
        java = java.getCause()


def _refusal(error: Exception, push: Push) -> str | None:
    """Return why a push is refused for this error; None while it is to be tried again."""
    if isinstance(error, Refused):
        return str(error)
    return f"its tokens could not be used before they ended: {_brief(error)}" if push.has_ended else None


def _brief(error: Exception) -> str:
    """Return the message without its stack. Py4J names the call in its first line, and the reason in the next one."""
    lines = [line.strip(": ") for line in str(error).strip().splitlines()[:2] if not line.startswith("\tat ")]
    return ": ".join(lines) or type(error).__name__


def _whose(token: dict[str, Any]) -> str:
    via = f" by way of {token['real_user']}" if token["real_user"] else ""
    return f"{token['kind']} of {token['owner']}{via}"

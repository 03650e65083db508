"""Settings of a declaration that hold a secret in clear are refused; everything else is accepted."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.secrets import SecretRef, is_secret, secrets_in, without_secrets
from airflow_kstream.model.streams.stream import StreamSpec
from tests.simulated.yarn import TICKET_SPEC

VALUE = "zzz-very-secret"
HOOK = f"https://hooks.slack.com/services/T0/{VALUE}"


def declared(**fields: Any) -> StreamSpec:
    return StreamSpec.from_mapping(TICKET_SPEC.to_mapping() | fields)


def variable(key: str) -> str:
    """Return the key as a name that an environment variable can have."""
    return re.sub(r"\W", "_", key)


@pytest.mark.parametrize(
    "key",
    [
        "spark.ssl.keyPassword",
        "spark.ssl.keyStorePassword",
        "spark.authenticate.secret",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.session.token",
        "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net",
        "spark.hadoop.fs.azure.sas.container.acc",
        "spark.hadoop.client.private.key",
        "spark.x.passphrase",
        "spark.x.pwd",
        "spark.x.pass",
        "spark.x.credentials",
        "spark.x.apiKey",
        "spark.x.api-key",
        "spark.x.hmac",
        "PGPASS",
        "DB_PASSWORD",
        "dbpassword",
        "AWS_SECRET_ACCESS_KEY",
        "AUTH_TOKEN",
    ],
)
class TestUnderASecretKey:
    def test_a_literal_is_refused_with_what_to_write_instead_and_is_not_shown(self, key: str) -> None:
        for fields in ({"conf": {key: VALUE}}, {"deploy": {"environment": {variable(key): VALUE}}}):
            with pytest.raises(InvalidInput, match=r"a secret in clear; write \{secret: conn:ID\}") as refused:
                declared(**fields)
            assert {key, variable(key)} & set(re.split(r"[:,]? |environment\.|conf\.", str(refused.value)))
            assert VALUE not in str(refused.value)

    def test_a_reference_is_taken_and_read_back(self, key: str) -> None:
        spec = declared(
            conf={key: {"secret": "conn:orders"}}, deploy={"environment": {variable(key): {"secret": "env:ORDERS"}}}
        )
        assert spec.conf[key] == SecretRef("conn:orders")
        assert StreamSpec.from_mapping(json.loads(json.dumps(spec.to_mapping()))) == spec

    def test_a_switch_is_no_secret(self, key: str) -> None:
        assert secrets_in(key, "false") == secrets_in(key, "") == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.hadoop.dfs.client.token.always-use", "false"),
        ("spark.kafka.clusters.c.sasl.token.mechanism", "SCRAM-SHA-512"),
        ("kafka.sasl.mechanism", "PLAIN"),
        ("spark.sql.tokenizer", "kafka"),
        ("spark.security.credentials.kafka.enabled", "false"),
        ("spark.security.credentials.retryWait", "5s"),
        ("spark.security.credentials.renewalRatio", "0.75"),
        ("spark.kerberos.renewal.credentials", "keytab"),
        ("spark.x.password.interval", "10m"),
        ("spark.x.password.file", "/run/secrets/x"),
        ("spark.x.token.lifetime", "7d"),
        ("spark.x.token", "/var/run/token"),
        ("spark.x.token", "86400"),
        ("spark.hadoop.hadoop.security.credential.provider.path", "jceks://hdfs/user/me/keys.jceks"),
        ("spark.hadoop.fs.s3a.aws.credentials.provider", "com.amazonaws.auth.InstanceProfileCredentialsProvider"),
        ("spark.x.credentials", "com.amazonaws.auth.InstanceProfileCredentialsProvider"),
        ("spark.redaction.regex", "(?i)secret|password"),
        ("spark.x.keytab", "/etc/streamer.keytab"),
        ("spark.x.bypass", "always"),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE"),
        ("url", "jdbc:postgresql://db/orders?user=ann&ssl=true"),
        ("kafka.sasl.jaas.config", 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k";'),
        ("spark.driver.extraJavaOptions", "-Dfile.encoding=UTF-8 -XX:+UseG1GC -Djavax.net.ssl.trustStore=/t.jks"),
    ],
)
def test_a_setting_that_is_no_secret_is_taken(key: str, value: str) -> None:
    assert declared(conf={key: value}).conf[key] == value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("url", f"jdbc:postgresql://db/orders?user=ann&password={VALUE}"),
        ("url", f"jdbc:sqlserver://db;user=ann;password={VALUE};encrypt=true"),
        ("url", f"https://ann:{VALUE}@registry/"),
        ("spark.driver.extraJavaOptions", f"-Dfile.encoding=UTF-8 -Djavax.net.ssl.keyStorePassword={VALUE}"),
        ("kafka.sasl.jaas.config", f'x.ScramLoginModule required username="ann" password="{VALUE}";'),
        ("spark.x.password", VALUE),
        ("url", f"https://hooks.slack.com/{VALUE}"),
        ("url", f"post to https://Example.webhook.office.com/{VALUE} or to nobody"),
        ("spark.x.url", f"https://discord.com/api/webhooks/{VALUE}"),
    ],
)
def test_a_secret_inside_of_a_value_is_refused_and_only_it_is_to_be_hidden(key: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"conf.{key}: a secret in clear"):
        declared(conf={key: value})
    assert secrets_in(key, value) == (VALUE,)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["--password", VALUE], "--password"),
        (["/in", "--api-key", VALUE, "--fast"], "--api-key"),
        ([f"--password={VALUE}"], "password"),
        ([f"--db.password={VALUE}", "x"], "db.password"),
        ([f"password={VALUE}"], "password"),
        ([f"-Dssl.keyPassword={VALUE}"], "ssl.keyPassword"),
        ([f"jdbc:postgresql://db/x?password={VALUE}"], "password"),
        ([f"https://ann:{VALUE}@host/"], "the password in an address"),
        (["--token", VALUE], "--token"),
        ([f"https://api.telegram.org/bot{VALUE}"], "the path of a webhook"),
    ],
)
def test_a_secret_among_the_arguments_is_refused_with_where_it_belongs(arguments: list[str], name: str) -> None:
    with pytest.raises(InvalidInput, match=r"let the job read it from its configuration") as refused:
        declared(arguments=arguments)
    assert f"arguments: {name}: a secret in clear" in str(refused.value)
    assert VALUE not in str(refused.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--password-file", "/run/secrets/db"],
        ["--kafka-keytab", "/etc/streamer.keytab", "--table", "a=b"],
        ["--token-lifetime", "7d", "--password", "--fast"],
        ["--trigger-seconds", "5", "hdfs://cluster/in"],
        ["--password"],
    ],
)
def test_arguments_that_hold_no_secret_are_taken(arguments: list[str]) -> None:
    assert declared(arguments=arguments).arguments == tuple(arguments)


@pytest.mark.parametrize("place", ["", "orders", "conn:", ":x", "vault:x", "conn", VALUE])
def test_a_reference_to_no_place_is_refused_without_being_shown(place: str) -> None:
    """A user may have written the secret itself there."""
    with pytest.raises(InvalidInput, match="secret names no place that is known; write") as refused:
        declared(conf={"spark.x": {"secret": place}})
    assert VALUE not in str(refused.value)


def test_a_secret_that_a_first_version_claim_masked_is_no_value_to_start_with() -> None:
    with pytest.raises(InvalidInput, match="a secret in clear"):
        declared(conf={"spark.ssl.keyPassword": "***"})


def test_a_name_alone_tells_whether_it_is_of_a_secret() -> None:
    assert is_secret("spark.ssl.keyPassword")
    assert not is_secret("spark.sql.tokenizer")


@pytest.mark.parametrize(
    "text",
    [
        *("a." * 50_000, "1." * 50_000, "x=" * 50_000, "a " * 50_000, '"a' * 50_000, "A://" * 25_000),
        *("--a " * 25_000, "--a" + " " * 50_000, "bearer " * 20_000, "authorization:" * 10_000, "?sig=&" * 20_000),
    ],
)
def test_masking_takes_no_time_whatever_a_job_printed(text: str) -> None:
    """What took the square of it took minutes, while a triggerer waited. 2 s is a hundred times what it takes."""
    began = time.process_time()
    without_secrets(text)
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "fields",
    [
        {HOOK: "orders"},
        {"notify": {HOOK: "orders"}},
        {"conf": {HOOK: ["orders"]}},
        {"deploy": {"environment": {HOOK: "orders"}}},
        {"airflow": {"callbacks": {HOOK: {}}}},
    ],
)
def test_a_refusal_does_not_show_a_webhook_that_was_written_as_a_key(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        declared(**fields)
    assert VALUE not in f"{refused.value} {refused.value.faults}"


@pytest.mark.parametrize("before", ["", "-D", "1", "..", "_", "é", '"'])
def test_a_key_is_found_wherever_it_begins_in_a_word(before: str) -> None:
    assert without_secrets(f"{before}my.password=hunter2 and so on") == f"{before}my.password=*** and so on"

"""Short names by Hadoop's rules: the expected ones are those of org.apache.hadoop.security.HadoopKerberosName."""

from __future__ import annotations

import pytest

from airflow_kstream.model.errors import InvalidInput
from airflow_kstream.model.kerberos.identity import short_name

RULES = """
RULE:[2:$1@$0](rm@EXAMPLE\\.COM)s/.*/yarn/
RULE:[1:$1@$0](.*@OTHER)s/@.*//
RULE:[2:$1.$2@$0]([jh]OB\\..*@EXAMPLE.COM)s/(\\w*)\\..*/$1/L
DEFAULT
"""


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("rm/host.example.com@EXAMPLE.COM", "yarn"),
        ("alice@OTHER", "alice"),
        ("hOB/node1@EXAMPLE.COM", "hob"),
        ("alice@EXAMPLE.COM", "alice"),
        ("nn/host@EXAMPLE.COM", "nn"),
        ("alice@NOWHERE", None),
    ],
)
def test_the_first_rule_about_a_principal_makes_its_name(principal: str, name: str | None) -> None:
    assert short_name(RULES, principal, "EXAMPLE.COM") == name


def test_one_line_and_several_are_the_same() -> None:
    assert short_name(RULES.replace("\n", " "), "rm/x@EXAMPLE.COM", "EXAMPLE.COM") == "yarn"


@pytest.mark.parametrize("rules", ["RULE:[2:$1@$0", "RULE:[1:$1](*)s/a/b/", "nonsense"])
def test_rules_that_can_t_be_read_are_refused(rules: str) -> None:
    with pytest.raises(InvalidInput, match="has a rule that can't be read"):
        short_name(rules, "alice@EXAMPLE.COM", "EXAMPLE.COM")

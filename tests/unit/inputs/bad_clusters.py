"""Connections that nobody can mean: the change to a good one, and the words that the refusal must have."""

from __future__ import annotations

from typing import Any

GOOD: dict[str, Any] = {
    "principal": "watcher/airflow.example.com@EXAMPLE.COM",
    "keytab_path": "/etc/security/keytabs/watcher.keytab",
    "state_dir": "/kstream",
    "resourcemanagers": "https://rm1.example.com:8090, https://rm2.example.com:8090",
    "namenodes": "https://nn1.example.com:9871",
    "default_fs": "hdfs://nameservice1",
}
_NO_KEYTAB = {"keytab_path": None}

BAD: dict[str, list[tuple[dict[str, Any], str]]] = {
    "fields": [
        (
            {"principle": "a@R"},
            "connection prod: principle: there is no such field; the fields are principal",
        ),
        ({"a": 1, "b": 2}, "a, b: there are no such fields"),
        ({"principal": None}, "principal is missing"),
        ({"principal": ""}, "principal is missing"),
        ({"state_dir": None}, "state_dir is missing"),
        ({"principal": None, "state_dir": None}, "principal is missing; state_dir is missing"),
        ({"\x1b[2J": 1}, r"\\x1b\[2J: there is no such field"),
    ],
    "principal": [
        ({"principal": "watcher"}, "principal is 'watcher'; allowed is primary"),
        ({"principal": "a b@R"}, "principal is 'a b@R'"),
        ({"principal": "@R"}, "principal is '@R'"),
        ({"principal": "a@"}, "principal is 'a@'"),
        ({"principal": "a@R@S"}, "principal is 'a@R@S'"),
        ({"principal": "--conf@R"}, "principal is '--conf@R'; allowed is .* that doesn't begin with -"),
        ({"principal": "a\x1b[31m@R"}, r"principal is 'a\\x1b\[31m@R'"),
        ({"principal": "a\u202e@R"}, r"principal is 'a\\u202e@R'"),
        ({"principal": 7}, "principal is 7; allowed is text"),
        ({"principal": ["a@R"]}, "principal is a list; allowed is text"),
    ],
    "credentials": [
        (_NO_KEYTAB, "needs one of keytab_path, keytab or ticket_cache"),
        ({"keytab": "BQIAAAA="}, "has both keytab and keytab_path; allowed is one of them"),
        ({"keytab_path": "watcher.keytab"}, "keytab_path is 'watcher.keytab'; allowed is an absolute path"),
        ({"keytab_path": "/etc/../k"}, "keytab_path is '/etc/../k'; allowed is an absolute path with no '..'"),
        ({"keytab_path": "/k\n"}, r"keytab_path is '/k\\n'"),
        ({"keytab_path": " /k"}, "keytab_path is ' /k'"),
        ({"keytab_path": "/k\0"}, r"keytab_path is '/k\\x00'"),
        (_NO_KEYTAB | {"keytab": "hunter2!"}, r"keytab is \*\*\*; allowed is base64 of a file"),
        (_NO_KEYTAB | {"keytab": "%%%"}, r"keytab is \*\*\*"),
        (_NO_KEYTAB | {"keytab": ["hunter2"]}, r"keytab is \*\*\*; allowed is text"),
        (
            _NO_KEYTAB | {"ticket_cache": "cache"},
            "ticket_cache is 'cache'; allowed is an absolute path, or FILE",
        ),
        (_NO_KEYTAB | {"ticket_cache": "API:0"}, "ticket_cache is 'API:0'"),
        (_NO_KEYTAB | {"ticket_cache": "FILE:"}, "ticket_cache is 'FILE:'"),
    ],
    "state_dir": [
        ({"state_dir": "/"}, "state_dir is '/'; allowed is an absolute HDFS path below /"),
        ({"state_dir": "kstream"}, "state_dir is 'kstream'"),
        ({"state_dir": "//"}, "state_dir is '//'"),
        ({"state_dir": "/a//b"}, "state_dir is '/a//b'"),
        ({"state_dir": "/a/../.."}, "state_dir is '/a/../..'"),
        ({"state_dir": "/a/./b"}, "state_dir is '/a/./b'"),
        ({"state_dir": "/a\nb"}, r"state_dir is '/a\\nb'"),
        ({"state_dir": "/a?b"}, r"state_dir is '/a\?b'"),
        ({"state_dir": "/a#b"}, "state_dir is '/a#b'"),
        ({"state_dir": "/a,b"}, "state_dir is '/a,b'"),
        ({"state_dir": "/a:b"}, "state_dir is '/a:b'"),
        ({"state_dir": "/a b"}, "state_dir is '/a b'"),
        ({"state_dir": "/a*"}, r"state_dir is '/a\*'"),
        ({"state_dir": "/{a,b}"}, "state_dir is '/{a,b}'"),
        ({"state_dir": "/a%41"}, "state_dir is '/a%41'"),
        ({"state_dir": "hdfs://ns/kstream"}, "state_dir is 'hdfs://ns/kstream'"),
    ],
    "addresses": [
        ({"namenodes": "nn1:9871"}, "namenodes is 'nn1:9871'; allowed is http://host:port"),
        ({"namenodes": "http://nn1:abc"}, "namenodes is 'http://nn1:abc'"),
        ({"namenodes": "http://nn1:99999"}, "namenodes is 'http://nn1:99999'"),
        ({"namenodes": "http://nn1:0"}, "namenodes is 'http://nn1:0'"),
        ({"namenodes": "http://"}, "namenodes is 'http://'"),
        ({"namenodes": "http:///a"}, "namenodes is 'http:///a'"),
        ({"namenodes": "ftp://nn1:1"}, "namenodes is 'ftp://nn1:1'"),
        ({"namenodes": ","}, "namenodes is ','"),
        ({"namenodes": "http://nn1:1 http://nn2:1"}, "namenodes is 'http://nn1:1 http://nn2:1'"),
        ({"namenodes": "http://nn1:1,http://nn1:1/"}, "namenodes is 'http://nn1:1,http://nn1:1/'"),
        ({"namenodes": "http://nn1:1?a=b"}, r"namenodes is 'http://nn1:1\?a=b'"),
        ({"namenodes": "http://nn1:1#a"}, "namenodes is 'http://nn1:1#a'"),
        ({"namenodes": "http://[::1"}, r"namenodes is 'http://\[::1'"),
        ({"namenodes": "http://n\x1bn:1"}, r"namenodes is 'http://n\\x1bn:1'"),
        ({"resourcemanagers": "http://u:hunter2@rm:1"}, r"resourcemanagers is \*\*\*; allowed is http://host:port"),
        ({"resourcemanagers": ["http://rm:1"]}, "resourcemanagers is a list; allowed is text"),
        ({"default_fs": "nameservice1"}, "default_fs is 'nameservice1'; allowed is hdfs://nameservice"),
        ({"default_fs": "hdfs://"}, "default_fs is 'hdfs://'"),
        ({"default_fs": "hdfs://ns/path"}, "default_fs is 'hdfs://ns/path'"),
        ({"default_fs": "file:///"}, "default_fs is 'file:///'"),
        ({"default_fs": "s3a://bucket"}, "default_fs is 's3a://bucket'"),
        ({"default_fs": "hdfs://u@ns"}, "default_fs is 'hdfs://u@ns'"),
    ],
    "files": [
        ({"krb5_conf": "krb5.conf"}, "krb5_conf is 'krb5.conf'; allowed is an absolute path"),
        ({"tls_ca": "ca.pem"}, "tls_ca is 'ca.pem'"),
        ({"hadoop_conf_dir": "conf"}, "hadoop_conf_dir is 'conf'"),
        ({"hadoop_conf_dir": "/etc/\x07"}, r"hadoop_conf_dir is '/etc/\\x07'"),
    ],
    "client_environment": [
        ({"client_environment": "A=b"}, "client_environment is 'A=b'; allowed is a mapping"),
        ({"client_environment": {"A": ["b"]}}, r"client_environment\.A is a list; allowed is text"),
        ({"client_environment": {"A": None}}, r"client_environment\.A is empty; allowed is text"),
        ({"client_environment": {"A": "b\0"}}, r"client_environment\.A is .*; allowed is text without NUL"),
        ({"client_environment": {"A": {"inherits": "A"}}}, r"client_environment\.A\.inherits: there is no such field"),
        (
            {"client_environment": {"A": {"inherit": "$A"}}},
            r"client_environment\.A\.inherit is '\$A'; allowed is a name",
        ),
        ({"client_environment": {"1A": "b"}}, r"client_environment.1A is .*; allowed is a name of letters"),
        *(
            ({"client_environment": {name: "/x"}}, f"client_environment sets {name}, which it may not: ")
            for name in (
                *("KRB5CCNAME", "KRB5_CONFIG", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "HADOOP_TOKEN_FILE_LOCATION"),
                *("HADOOP_PROXY_USER", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "PYTHONHASHSEED"),
            )
        ),
        (
            {"client_environment": {"PYSPARK_PYTHON": {"inherit": "PYSPARK_PYTHON"}}},
            "hands it on to the job; write it into deploy.environment of the declarations that need it",
        ),
        (
            {"client_environment": {"HADOOP_CREDSTORE_PASSWORD": "hunter2"}},
            'holds a secret in HADOOP_CREDSTORE_PASSWORD, and is shown; inherit it from the worker: {"inherit": ',
        ),
        ({"client_environment": {"PROXY": "http://a:hunter2@b"}}, "holds a secret in PROXY, and is shown"),
    ],
    "spark_conf": [
        ({"spark_conf": "spark.a=b"}, r"spark_conf is \*\*\*; allowed is a mapping"),
        ({"spark_conf": ["spark.a"]}, r"spark_conf is \*\*\*; allowed is a mapping"),
        ({"spark_conf": {"spark.a": ["hunter2"]}}, r"spark_conf\.spark\.a is \*\*\*; allowed is text"),
        ({"spark_conf": {"spark.a": None}}, r"spark_conf\.spark\.a is \*\*\*; allowed is text"),
        ({"spark_conf": {"": "x"}}, "spark_conf.'' is .*; allowed is a name"),
        ({"spark_conf": {"a=b": "x"}}, "spark_conf.a=b"),
        ({"spark_conf": {"spark.a": "x\0"}}, r"spark_conf\.spark\.a is \*\*\*; allowed is text without NUL"),
        ({"spark_conf": {"spark.master": "local"}}, "spark_conf sets spark.master, which it may not: master is yarn"),
        ({"spark_conf": {"spark.kstream.state": "/x"}}, "spark_conf sets spark.kstream.state, which it may not"),
        ({"spark_conf": {"spark.yarn.maxAppAttempts": 2}}, "maxAppAttempts='2'; allowed is 1"),
        ({"spark_conf": {"spark.hadoop.fs.defaultFS": "hdfs://b"}}, "spark_conf sets spark.hadoop.fs.defaultFS"),
        ({"spark_conf": {"spark.yarn.stagingDir": "abfs://c@a/b"}}, "to another filesystem Spark copies"),
        ({"spark_conf": {"spark.yarn.tags": "kstream-x"}}, "no tag of a job's own may begin with kstream"),
        ({"spark_conf": {"spark.kerberos.renewal.credentials": "ccache"}}, "allowed is keytab"),
    ],
}

ACCEPTED: dict[str, dict[str, Any]] = {
    "as it is": {},
    "empty fields of the form": {"tls_ca": "", "krb5_conf": None, "keytab": ""},
    "a trailing slash": {"state_dir": "/kstream/"},
    "a state_dir with odd letters": {"state_dir": "/user/etl_1/day=1/a.b-c+d@e"},
    "another port": {"default_fs": "hdfs://nn1.example.com:8020"},
    "a gateway's path": {"resourcemanagers": "https://knox:8443/gateway/default"},
    "an IPv6 address": {"namenodes": "http://[::1]:9870"},
    "the form's own placeholder": {"spark_conf": {"spark.yarn.queue": "streams"}},
    "variables for the client": {
        "client_environment": {"A": 3, "LD_PRELOAD": "/x.so", "SPARK_HOME": {"inherit": "SPARK3_HOME"}}
    },
    "numbers and booleans": {"spark_conf": {"spark.a": 8, "spark.b": True, "spark.c": 0.5}},
    "a base64 keytab alone": {"keytab_path": None, "keytab": "BQIAAAA="},
    "a ticket cache alone": {"keytab_path": None, "ticket_cache": "FILE:/run/cache"},
    "a keytab and a cache": {"ticket_cache": "KCM:0"},
    "a cache as RHEL's krb5.conf names it": {"ticket_cache": "KCM:"},
    "a host without a domain": {"principal": "watcher/edge@R"},
}

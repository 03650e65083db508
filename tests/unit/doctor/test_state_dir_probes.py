"""What the check of a connection tells of its state_dir before it writes there, and what it makes of an open one.

HDFS is simulated; what a real NameNode makes of the same commands is in tests/contract/test_closed_state_dir.py.
"""

from __future__ import annotations

import pytest

from airflow_kstream.model.clusters.authors import SUPERVISORS_FILE, FolderKind, folder_name
from airflow_kstream.model.errors import Denied, NotFound
from airflow_kstream.model.streams.declarations import fingerprint
from airflow_kstream.model.streams.generation import StreamId
from airflow_kstream.supervise.clusters.copies import copy_name, written_copy
from airflow_kstream.supervise.clusters.session import ClusterSession
from airflow_kstream.supervise.doctor.connection import _probes, closed_state_dir, told_supervisors
from tests.simulated.life import SPEC
from tests.simulated.servers import CLUSTER, SimClock, SimHdfs, SimYarn, session_of

STATE_DIR = CLUSTER.state_dir
FILE = f"{STATE_DIR}/{SUPERVISORS_FILE}"
ORDERS = StreamId("orders", STATE_DIR)


@pytest.fixture
def hdfs() -> SimHdfs:
    return SimHdfs(SimClock())


def opened(hdfs: SimHdfs) -> ClusterSession:
    return session_of(hdfs, SimYarn(hdfs.clock))


def named(hdfs: SimHdfs, text: str, owner: str = "streamer") -> None:
    hdfs.files[FILE], hdfs.owners[FILE] = (text, hdfs.now()), owner


def submitted_as(hdfs: SimHdfs, user: str, stream: StreamId = ORDERS, owner: str = "") -> None:
    """Let a supervisor keep a copy of a declaration whose stream ran as this user, and the stream have its folder."""
    declared = f"{STATE_DIR}/{folder_name(FolderKind.DECLARED, 'streamer')}"
    copy = f"{declared}/{stream}/{copy_name(fingerprint(SPEC), user)}"
    owned = {declared: "streamer", f"{declared}/{stream}": "streamer", stream.folder: owner or user}
    for path, owner in owned.items():
        hdfs.modes[path], hdfs.owners[path] = "755", owner
    hdfs.files[copy], hdfs.owners[copy] = (written_copy(SPEC, user), hdfs.now()), "streamer"


class TestSupervisors:
    def test_they_are_named_with_the_reason_why_each_is_one(self, hdfs: SimHdfs) -> None:
        named(hdfs, "jane  # on call\nada\n")
        said = told_supervisors(opened(hdfs))
        assert said.words == (
            "hdfs (owns /); streamer (owns /kstream); ada, jane (named in /kstream/supervisors). streamer, this "
            "connection's principal, is one of them"
        )
        assert (said.commands, said.warns) == ((), False)

    @pytest.mark.parametrize(
        ("text", "line"),
        [("", "echo jane"), ("ada\n", "echo jane"), ("ada", "printf '\\n%s\\n' jane")],
    )
    def test_who_is_none_of_them_gets_the_line_to_add(self, hdfs: SimHdfs, text: str, line: str) -> None:
        """A last line without an end would become one with the name."""
        named(hdfs, text)
        with hdfs.as_user("jane"):
            said = told_supervisors(opened(hdfs))
        assert said.warns
        assert "jane, this connection's principal, is none of them" in said.words
        assert said.commands == (f"{line} | hdfs dfs -appendToFile - {FILE}", f"hdfs dfs -chmod 644 {FILE}")

    def test_there_need_be_no_such_file(self, hdfs: SimHdfs) -> None:
        with hdfs.as_user("jane"):
            said = told_supervisors(opened(hdfs))
        assert "/kstream/supervisors names nobody" in said.words
        assert said.commands[0] == f"echo jane | hdfs dfs -appendToFile - {FILE}"

    def test_a_strangers_file_names_nobody_and_has_to_go(self, hdfs: SimHdfs) -> None:
        named(hdfs, "mallory\n", owner="mallory")
        with hdfs.as_user("mallory"):
            said = told_supervisors(opened(hdfs))
        assert f"{FILE} belongs to mallory, so that it names nobody" in said.words
        assert said.commands[0] == f"hdfs dfs -rm -r {FILE}"
        assert told_supervisors(opened(hdfs)).warns, "its owner should know, too"

    def test_a_file_that_nobody_else_may_read_gets_its_mode(self, hdfs: SimHdfs) -> None:
        named(hdfs, "ada\n")

        def refuse(request: str, path: str) -> None:
            if (request, path) == ("read", FILE):
                raise Denied("Permission denied: user=jane, access=READ", tried=f"read {FILE}")

        hdfs.at_request = refuse
        with hdfs.as_user("jane"):
            said = told_supervisors(opened(hdfs))
        assert said.commands == (f"hdfs dfs -chmod 644 {FILE}",)

    def test_a_file_that_only_its_owner_may_read_is_a_warning_for_its_reader(self, hdfs: SimHdfs) -> None:
        named(hdfs, "ada\n")
        hdfs.modes[FILE] = "600"
        said = told_supervisors(opened(hdfs))
        assert f"not everybody may read {FILE}" in said.words
        assert (said.commands, said.warns) == ((f"hdfs dfs -chmod 644 {FILE}",), True)

    def test_a_line_that_is_no_short_name_is_a_warning(self, hdfs: SimHdfs) -> None:
        named(hdfs, "ada\njane@EXAMPLE.COM\nf\udcfcr M\n")
        said = told_supervisors(opened(hdfs))
        assert "they name nobody: 'f\ufffdr M', 'jane@EXAMPLE.COM'" in said.words
        assert said.warns

    def test_without_a_state_dir_there_are_none(self, hdfs: SimHdfs) -> None:
        del hdfs.modes[STATE_DIR]
        with pytest.raises(NotFound):
            told_supervisors(opened(hdfs))


class TestWhoMayCreate:
    def test_a_closed_one_passes_with_its_users(self, hdfs: SimHdfs) -> None:
        said = closed_state_dir(opened(hdfs))
        assert (said.commands, said.warns) == ((), False)
        assert said.words.startswith("/kstream has the mode 755, streamer:supergroup; it is used by ")

    def test_an_open_one_is_a_warning_with_the_commands_for_all_who_use_it(self, hdfs: SimHdfs) -> None:
        hdfs.modes[STATE_DIR] = "1777"
        submitted_as(hdfs, "etl")
        said = closed_state_dir(opened(hdfs))
        assert said.warns
        assert "it is open: everybody may create in it" in said.words
        assert "etl (runs orders): not known whether it can create" in said.words
        assert said.commands == ("hdfs dfs -setfacl -m user::rwx,group::r-x,other::r-x,user:etl:rwx /kstream",)

    def test_the_right_of_everybody_is_nobodys_own(self, hdfs: SimHdfs) -> None:
        """What can be created now tells nothing of what can be once it is closed."""
        hdfs.modes[STATE_DIR] = "1777"
        named(hdfs, "jane\n")
        with hdfs.as_user("jane"):
            said = closed_state_dir(opened(hdfs))
        assert "jane (is this connection's): can create" in said.words
        assert "user:jane:rwx" in said.commands[0]

    def test_strangers_who_own_something_there_get_no_right_to_create(self, hdfs: SimHdfs) -> None:
        hdfs.modes[STATE_DIR] = "1777"
        for kind in FolderKind:
            folder = f"{STATE_DIR}/{folder_name(kind, 'mallory')}"
            hdfs.modes[folder], hdfs.owners[folder] = "777", "mallory"
        assert closed_state_dir(opened(hdfs)).commands == ("hdfs dfs -chmod 1755 /kstream",)

    def test_a_principal_that_can_t_create_can_keep_no_copies_and_no_notes(self, hdfs: SimHdfs) -> None:
        named(hdfs, "jane\n")
        hdfs.refused = (f"-wx {STATE_DIR}",)
        with hdfs.as_user("jane"):
            said = closed_state_dir(opened(hdfs))
        assert "jane can keep no copies of declarations" in said.words
        assert "jane can note nothing of what was told" in said.words
        assert "user:jane:rwx" in said.commands[-1]

    def test_a_principal_with_a_folder_for_it_can_note_what_was_told(self, hdfs: SimHdfs) -> None:
        named(hdfs, "jane\n")
        hdfs.refused = (f"-wx {STATE_DIR}",)
        hdfs.make_folder(told := f"{STATE_DIR}/told.jane", "755")
        hdfs.owners[told] = "jane"
        with hdfs.as_user("jane"):
            said = closed_state_dir(opened(hdfs))
        assert "can note nothing" not in said.words

    def test_without_acls_folders_are_made_and_the_words_say_what_that_means(self, hdfs: SimHdfs) -> None:
        hdfs.modes[STATE_DIR], hdfs.keeps_acls = "1777", False
        submitted_as(hdfs, "etl")
        said = closed_state_dir(opened(hdfs))
        assert said.commands[0] == "hdfs dfs -mkdir -p /kstream/orders.etl"
        assert said.commands[-1] == "hdfs dfs -chmod 1755 /kstream"
        assert "etl will be able to create nothing beside the folders that are made here" in said.words

    def test_without_acls_who_runs_several_streams_gets_a_folder_for_each(self, hdfs: SimHdfs) -> None:
        clicks = StreamId("clicks", STATE_DIR)
        hdfs.modes[STATE_DIR], hdfs.keeps_acls = "1777", False
        submitted_as(hdfs, "etl", clicks, owner="former")
        submitted_as(hdfs, "etl", owner="former")
        said = closed_state_dir(opened(hdfs))
        assert said.commands[0] == f"hdfs dfs -mkdir -p {clicks.folder} {ORDERS.folder} /kstream/orders.etl"
        assert "etl (runs clicks, runs orders): not known whether it can create" in said.words

    def test_folders_that_nobody_makes_are_not_promised(self, hdfs: SimHdfs) -> None:
        hdfs.modes[STATE_DIR], hdfs.keeps_acls = "1755", False
        submitted_as(hdfs, "etl")
        said = closed_state_dir(opened(hdfs))
        assert said.commands == ()
        assert "will be able to create nothing" not in said.words


class TestMaking:
    def test_a_missing_one_prints_what_makes_it(self, hdfs: SimHdfs) -> None:
        del hdfs.modes[STATE_DIR]
        said = closed_state_dir(opened(hdfs))
        assert said.warns
        assert said.commands == (
            "hdfs dfs -mkdir -p /kstream",
            "hdfs dfs -chown streamer /kstream",
            "hdfs dfs -chmod 1755 /kstream",
        )
        assert STATE_DIR not in hdfs.modes

    def test_a_missing_one_is_made_closed(self, hdfs: SimHdfs) -> None:
        del hdfs.modes[STATE_DIR]
        said = closed_state_dir(opened(hdfs), make=True)
        assert not said.warns
        assert hdfs.modes[STATE_DIR] == "1755"

    def test_an_open_one_is_closed_and_those_who_use_it_can_still_create(self, hdfs: SimHdfs) -> None:
        hdfs.modes[STATE_DIR] = "777"
        submitted_as(hdfs, "etl")
        said = closed_state_dir(opened(hdfs), make=True)
        assert hdfs.modes[STATE_DIR] == "1775", "the digit of the group is the ACL's mask"
        assert "user:etl:rwx" in hdfs.entries[STATE_DIR]
        assert (said.commands, said.warns) == ((), False)
        assert closed_state_dir(opened(hdfs), make=True) == said

    def test_who_does_not_own_it_changes_nothing_and_gets_the_commands(self, hdfs: SimHdfs) -> None:
        hdfs.modes[STATE_DIR] = "1777"
        named(hdfs, "jane\n")
        before = dict(hdfs.modes)
        with hdfs.as_user("jane"), pytest.raises(Denied, match="runs: `hdfs dfs -setfacl -m "):
            closed_state_dir(opened(hdfs), make=True)
        assert hdfs.modes == before

    def test_folders_for_others_are_the_superusers_to_make(self, hdfs: SimHdfs) -> None:
        hdfs.modes[STATE_DIR], hdfs.keeps_acls = "1777", False
        submitted_as(hdfs, "etl")
        with pytest.raises(Denied, match="only HDFS's superuser makes folders for others"):
            closed_state_dir(opened(hdfs), make=True)
        assert hdfs.modes[STATE_DIR] == "1777"


def test_who_may_speak_and_create_comes_before_the_first_write(hdfs: SimHdfs) -> None:
    names = list(_probes())
    assert names.index("who may create in state_dir") < names.index("supervisors") < names.index("state_dir")
    requests: list[str] = []
    hdfs.at_request = lambda request, path: requests.append(request)
    closed_state_dir(opened(hdfs))
    told_supervisors(opened(hdfs))
    assert not {"write", "rename", "delete", "close"} & set(requests)

"""What a cluster has as a document: written, read, and refused by its lines."""

from __future__ import annotations

import pytest

from cogwork.cli.management.cluster_document import as_text, entries_in, tables_of
from cogwork.config.errors import ConfigurationError
from cogwork.container.cluster.document import DocumentEntry, binding_name
from cogwork.container.cluster.settings import permission_name

RULE = {"user": "bob", "address": "queue/#", "rights": ["send", "receive"]}
DENIED = {"group": "ops", "vhost": "west", "address": 'a"b', "rights": ["send"], "deny": True}
BOUND = {"source": "logs", "destination": "queue/jobs", "key": "a.#", "arguments": {"x": 1}}
EXCHANGE = {"type": "topic", "durable": True, "auto_delete": False, "internal": False}
ENTRIES = [
    DocumentEntry("root", "", "root", {"disabled": ["a", "b"], "allow_none": True}),
    DocumentEntry("limit", "", "connections", {"value": 900}),
    DocumentEntry("limit", "", "user/bob/connections", {"value": 5}),
    DocumentEntry("user", "", "bob", {"groups": ["ops"], "mesh": True}),
    DocumentEntry("user", "", "by certificate", {}),
    DocumentEntry("permission", "", permission_name(RULE), RULE),
    DocumentEntry("permission", "", permission_name(DENIED), DENIED),
    DocumentEntry("vhost", "", "west", {}),
    DocumentEntry("stream", "", "orders", {"engine": "raft", "replicas": ["a", "b"]}),
    DocumentEntry("queue", "west", "work/jobs", {"durability": "replicated", "ttl_s": 2.5}),
    DocumentEntry("exchange", "", "logs", {**EXCHANGE, "arguments": {}}),
    DocumentEntry("policy", "", "ttl", {"pattern": "^a", "priority": 2, "message-ttl": 500}),
    DocumentEntry("binding", "", binding_name(BOUND), BOUND),
]


def test_what_is_written_is_read() -> None:
    text = as_text(tables_of(ENTRIES))
    found = [entry for entry, _ in entries_in(text, "x.toml").values()]
    assert sorted(found) == sorted(ENTRIES)


def test_a_permission_of_a_files_user_does_not_declare_the_user() -> None:
    text = as_text(tables_of([DocumentEntry("permission", "", permission_name(RULE), RULE)]))
    assert [key[0] for key in entries_in(text, "x.toml")] == ["permission"]


def test_who_is_never_the_root_is_read_as_a_cluster_keeps_it() -> None:
    text = '[root]\ndisabled = ["b", "a"]\nallow_none = false\n'
    entries = [entry for entry, _ in entries_in(text, "x.toml").values()]
    assert entries == [DocumentEntry("root", "", "root", {"disabled": ["a", "b"]})]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('id = "a"\n', 1, "id"),
        ("[limits]\nconnections = 3\n\n[[listen]]\nport = 1\n", 4, "listen"),
        ('[[vhost]]\nname = "west"\n[[vhost.schema]]\naddress = "queue/a"\n', 3, "schema"),
        ('[[user]]\nname = "bob"\nmesh = true\ntokens = true\n', 4, "tokens"),
        ("[limits]\nconnections = -1\n", 2, "connections"),
        ("\nroot = 3\n", 2, "root"),
        ('[[user]]\nname = "bob"\nmesh = 3\n', 3, "mesh"),
        ('[[queue]]\naddress = "work/a"\n[[queue]]\naddress = "/work/a"\n', 4, "queue"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        entries_in(text, "x.toml")
    assert (error.value.line, what in str(error.value)) == (line, True), str(error.value)

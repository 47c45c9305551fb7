"""Examples of deployments: their configurations and commands run, as three containers."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import textwrap
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec.yaml
import pytest
from forked import forked

from cogwork.bench.servers.process import free_ports

from .served import READY_TIMEOUT_S, ran, within

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[2] / "examples"


class Deployment:
    """What an example says.

    Attributes:
        ids: Of the containers.
        configuration: Their file.
        words: What each one's command is, without the program, with `ID` for its id.
        user: Who may look, as in a URL.
    """

    def __init__(self, ids: list[str], configuration: str, words: list[str], user: str) -> None:
        self.ids = ids
        self.configuration = configuration
        self.words = words
        self.user = user


def first(pattern: str, text: str) -> str:
    """Return what the first match of a pattern has in its group."""
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    assert found is not None, pattern
    return found[1]


def of_compose() -> Deployment:
    folder = EXAMPLES / "compose"
    ids = re.findall(r"COGWORK_ID: (\w+)", (folder / "compose.yaml").read_text())
    command = first(r'CMD \["sh", "-c", "exec (.*)"\]', (folder / "Dockerfile").read_text())
    words = shlex.split(command.replace('\\"$COGWORK_ID\\"', "ID"))
    text = (folder / "cogwork.toml").read_text()
    return Deployment(ids, text, words[1:], "operator:operator@")


def of_kubernetes() -> Deployment:
    text = (EXAMPLES / "kubernetes" / "cogwork.yaml").read_text()
    ids = [f"cogwork-{number}" for number in range(int(first(r"^  replicas: (\d+)", text)))]
    command = first(r"          command:\n((?:            - [^\n]+\n)+)", text)
    words = command.replace("$(COGWORK_ID)", "ID").replace("- ", "").split()
    configuration = textwrap.dedent(first(r"^  cogwork.toml: \|\n(.*?)^---", text))
    password = first(r"^  password: (\S+)", text)
    assert int(first(r"terminationGracePeriodSeconds: (\d+)", text)) > 10
    placed_file = f'"LINKS-{password}'
    return Deployment(ids, configuration.replace('"/etc/cogwork/links', placed_file), words[1:], "")


@pytest.mark.parametrize("of", [of_compose, of_kubernetes])
def test_three_containers_of_an_example_are_a_cluster(
    tmp_path: Path, of: Callable[[], Deployment]
) -> None:
    deployment = of()
    ports = dict(zip(deployment.ids, free_ports(len(deployment.ids)), strict=True))
    (tmp_path / "password").write_text("change-me")
    (tmp_path / "password").chmod(0o600)
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for own in deployment.ids:
            file = tmp_path / f"{own}.toml"
            file.write_text(placed(deployment, own, ports, tmp_path))
            words = [own if word == "ID" else word for word in deployment.words]
            words[words.index("--config") + 1] = str(file)
            with (tmp_path / f"{own}.log").open("wb") as output:
                processes.append(forked(*words, stdout=output, stderr=output))
        url = f"amqp://{deployment.user}127.0.0.1:{ports[deployment.ids[0]]}"

        def is_well() -> bool:
            shown = ran("cluster", "status", url).stdout
            return "root " in shown and shown.count("active") == len(deployment.ids)

        within(READY_TIMEOUT_S, is_well, "all three are one cluster")
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(30) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()


def placed(deployment: Deployment, own: str, ports: dict[str, int], folder: Path) -> str:
    """Return a configuration with the places that there are on this machine."""
    text = deployment.configuration
    text = re.sub(r'data_dir = ".*"', f'data_dir = "{folder / own}"', text)
    text = text.replace('host = "0.0.0.0"\nport = 5672', f"port = {ports[own]}")
    # The file is read as one that is on this machine alone: a link to itself is a mistake there.
    itself = rf'\[\[link\]\]\nurl = "[^"]*@{own}(\.\w+)?:5672"\n(password_file = .*\n)?'
    text, count = re.subn(itself, "", text)
    assert count == 1
    for name, port in ports.items():
        text = re.sub(rf"@{name}(\.\w+)?:5672", f"@127.0.0.1:{port}", text)
    return re.sub(r'"LINKS-[^/"]*/password"', f'"{folder / "password"}"', text)


def rendered(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Have Helm write what the chart says; skip the test where there is no Helm."""
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed")
    chart = str(EXAMPLES / "kubernetes" / "helm")
    return subprocess.run(
        [helm, "template", "cogwork", chart, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def documents(text: str) -> dict[tuple[str, str], Any]:
    """Return what a manifest has by kind and name, without annotations."""
    found = {}
    parts = map(msgspec.yaml.decode, re.split("^---$", text, flags=re.MULTILINE))
    for each in filter(None, parts):
        each.get("spec", {}).get("template", {}).get("metadata", {}).pop("annotations", None)
        found[each["kind"], each["metadata"]["name"]] = each
    return found


def test_the_chart_says_the_same_as_the_manifest() -> None:
    done = rendered("--set", "linkPassword=change-me")
    assert done.returncode == 0, done.stderr
    plain = (EXAMPLES / "kubernetes" / "cogwork.yaml").read_text()
    assert documents(done.stdout) == documents(plain)


def test_the_chart_has_other_sizes_users_and_secrets() -> None:
    users = '[[user]]\nname = "ann"\n'
    given = ("replicas=5", "linkSecret=mine", "storage.className=quick", "spread=false")
    done = rendered("--set", ",".join(given), "--set-string", f"configuration={users}")
    assert done.returncode == 0, done.stderr
    found = documents(done.stdout)
    assert ("Secret", "cogwork-links") not in found
    text = found["ConfigMap", "cogwork"]["data"]["cogwork.toml"]
    configured = tomllib.loads(text)
    assert configured["cluster"]["primaries"] == [f"cogwork-{number}" for number in range(5)]
    assert len(configured["link"]) == 5
    assert [each["name"] for each in configured["user"]] == ["mesh", "ann"]


def test_a_chart_without_a_password_says_what_is_missing() -> None:
    done = rendered()
    assert done.returncode != 0
    assert "linkPassword, or linkSecret" in done.stderr

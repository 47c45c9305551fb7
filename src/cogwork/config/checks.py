"""The rules between the keys of a configuration, which their types cannot say.

Each check looks at one table and yields what is wrong with it, as a path from that table; the
caller puts the path of the table before it. The first problem is the one that is reported.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

from cogwork.amqp.redirect import host_of
from cogwork.amqp.sasl import OAUTHBEARER
from cogwork.config.dial_checks import check_dialled
from cogwork.config.engine_checks import check_engine, check_engine_of
from cogwork.config.exchange_checks import check_exchanges
from cogwork.config.link_urls import BadLinkUrl, LinkUrl
from cogwork.config.node_checks import check_kind
from cogwork.config.oauth_checks import check_oauth
from cogwork.config.password_hash import PasswordHashError, check_hash
from cogwork.config.place_checks import find_misplaced
from cogwork.config.policy_checks import check_policies, find_policy_problems
from cogwork.config.problems import Problem, each, named_twice, twice
from cogwork.config.security_log_settings import SECURITY_STREAM
from cogwork.config.tls_checks import check_ciphers_of, check_tls
from cogwork.config.user_word import USER, names_user
from cogwork.io.networks import network_of
from cogwork.router.addresses import MAX_ADDRESS_LENGTH
from cogwork.router.mesh.bounds import (
    CLUSTER_BYTES_MAX,
    ID_BYTES_MAX,
    VIRTUAL_HOST_BYTES_MAX,
    VIRTUAL_HOSTS_MAX,
)
from cogwork.router.patterns import misplaced_wildcard
from cogwork.sasl.mechanisms import MECHANISMS, SCRAM
from cogwork.sasl.verifier import VerifierError, parse_verifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cogwork.config.settings import (
        Address,
        Anonymous,
        Audit,
        Cluster,
        Configuration,
        Group,
        Link,
        Listen,
        Node,
        Permission,
        Policy,
        Queue,
        Stream,
        User,
        Vhost,
    )

__all__ = (
    "find_problem",
    "problem_of_permission",
    "problem_of_policy",
    "problem_of_user",
    "problem_of_vhost",
)

_MODE = re.compile(r"0?[0-7]{3}")


def find_problem(configuration: Configuration) -> Problem | None:
    """Find the first contradiction in a configuration; None is a good one."""
    return next(_configuration(configuration), None)


def problem_of_user(user: User) -> str:
    """Return what is wrong with a user that no file names; empty where nothing is."""
    return _in_words(_user(user))


def problem_of_permission(permission: Permission) -> str:
    """Return what is wrong with a permission that no file names; empty where nothing is."""
    return _in_words(_permissions("permissions", [permission]))


def problem_of_vhost(vhost: Vhost) -> str:
    """Return what is wrong with a virtual host that no file names; empty where nothing is."""
    return _in_words(_virtual_hosts([vhost]))


def problem_of_policy(policy: Policy) -> str:
    """Return what is wrong with a policy that no file names; empty where nothing is."""
    return _in_words(find_policy_problems(policy))


def _in_words(problems: Iterator[Problem]) -> str:
    problem = next(problems, None)
    if problem is None:
        return ""
    return f"{problem.path[-1]} is {problem.found} (expected {problem.expected})"


def _cluster(cluster: Cluster, own: str) -> Iterator[Problem]:
    key = "primaries" if cluster.voters is None else "voters"
    if cluster.voters not in (None, cluster.primaries):
        yield Problem((key,), "primaries, too, and other ones", "primaries alone: voters is old")
    yield from named_twice(key, cluster.primaries)
    if cluster.name is not None:
        yield from _visible("name", cluster.name)
        size_bytes = len(cluster.name.encode())
        if size_bytes > CLUSTER_BYTES_MAX:
            yield Problem(("name",), f"{size_bytes} bytes", f"at most {CLUSTER_BYTES_MAX}")
    yield from _role(cluster, own)


def _role(cluster: Cluster, own: str) -> Iterator[Problem]:
    """Compare the role of a container with the list of primaries."""
    if cluster.role is None:
        return
    if cluster.primaries is None:
        yield Problem(("role",), f"{cluster.role!r} without primaries", "primaries, too")
    elif (own in cluster.primaries) != (cluster.role == "primary"):
        is_listed = "is" if own in cluster.primaries else "is not"
        yield Problem(
            ("role",),
            f"{cluster.role!r}, and {own!r} {is_listed} among the primaries",
            "a role that agrees with primaries",
        )


def _configuration(configuration: Configuration) -> Iterator[Problem]:
    yield from _id(configuration)
    can_log_in = _mechanisms_with_users(configuration)
    for at, listen in enumerate(configuration.listeners):
        for problem in _listen(listen, can_log_in):
            yield problem.below("listen", at)
    ports = [each.endpoint if each.port else None for each in configuration.listeners]
    yield from twice("listen", "port", ports)
    yield from twice("listen", "path", [each.path for each in configuration.listeners])
    yield from _links(configuration)
    yield from check_dialled(configuration)
    for problem in _cluster(configuration.cluster, configuration.id or socket.gethostname()):
        yield problem.below("cluster")
    for at, user in enumerate(configuration.users):
        for problem in _user(user):
            yield problem.below("user", at)
    yield from twice("user", "name", [user.name for user in configuration.users])
    yield from each("group", configuration.groups, _group)
    yield from twice("group", "name", [group.name for group in configuration.groups])
    yield from _groups_of_users(configuration)
    for problem in () if configuration.oauth is None else check_oauth(configuration.oauth):
        yield problem.below("oauth")
    yield from _anonymous(configuration.anonymous)
    yield from _virtual_host(configuration)
    yield from _virtual_hosts(configuration.vhosts)
    for at, vhost in enumerate(configuration.vhosts):
        for problem in _virtual_host(vhost):
            yield problem.below("vhost", at)
    yield from _telemetry(configuration)
    yield from _security_log(configuration)
    vhosts = {vhost.name for vhost in configuration.vhosts}
    yield from each("audit", configuration.audits, lambda it: _audit(it, vhosts))
    audited = [f"{it.vhost or ''}:{it.queue.lstrip('/')}" for it in configuration.audits]
    yield from twice("audit", "queue", [each.removeprefix(":") for each in audited])
    yield from each("engine", configuration.engines, check_engine)
    yield from twice("engine", "name", [engine.name for engine in configuration.engines])
    yield from twice("vhost", "name", [vhost.name for vhost in configuration.vhosts])


def _id(configuration: Configuration) -> Iterator[Problem]:
    """Check the id: what it is made of, and its length, to which a worker adds its number."""
    if configuration.id is None:
        return
    yield from _visible("id", configuration.id)  # no other container would take it
    size_bytes = len(configuration.id.encode())
    workers = configuration.workers
    size_max_bytes = ID_BYTES_MAX - (len(f".{workers - 1}") if workers > 1 else 0)
    if size_bytes > size_max_bytes:
        yield Problem(("id",), f"{size_bytes} bytes", f"at most {size_max_bytes}")


def _virtual_hosts(vhosts: Sequence[Vhost]) -> Iterator[Problem]:
    """Check names and their number: linked containers tell each other all of them."""
    count_max = VIRTUAL_HOSTS_MAX - 1  # the default one is among them
    if len(vhosts) > count_max:
        yield Problem(("vhost",), f"an array of {len(vhosts)}", f"at most {count_max} items")
    for at, vhost in enumerate(vhosts):
        size_bytes = len(vhost.name.encode())
        if size_bytes > VIRTUAL_HOST_BYTES_MAX:
            expected = f"at most {VIRTUAL_HOST_BYTES_MAX}"
            yield Problem(("vhost", at, "name"), f"{size_bytes} bytes", expected)
        for problem in _visible("name", vhost.name):
            yield problem.below("vhost", at)


def _mechanisms_with_users(configuration: Configuration) -> set[str]:
    """Which mechanisms let anyone in at all."""
    usable: set[str] = {"ANONYMOUS"}
    if configuration.oauth is not None:
        usable.add("OAUTHBEARER")
    for user in configuration.users:
        usable.add("EXTERNAL")
        if user.password_hash is not None:
            usable.add("PLAIN")
        for line in user.scram_verifiers:
            hash_name = f"sha{line.partition('$')[0].rpartition('-')[2]}"
            usable.update(each for each in SCRAM if MECHANISMS[each].hash_name == hash_name)
    return usable


def _listen(listen: Listen, can_log_in: set[str]) -> Iterator[Problem]:
    transport = f'transport = "{listen.transport}"'
    yield from _tls(listen)
    if listen.origins and listen.transport not in ("ws", "wss"):
        yield Problem(
            ("origins",), f"an array for {transport}", 'transport = "ws" or "wss" with it'
        )
    yield from _networks(listen)
    yield from _place(listen)
    yield from _advertised(listen)
    has_authority = listen.tls is not None and listen.tls.client_ca is not None
    if listen.tls is not None and listen.tls.require_client_certificate and not has_authority:
        yield Problem(("tls", "client_ca"), "nothing", "the authority of the required certificates")
    if listen.sasl and "EXTERNAL" in listen.sasl and not has_authority:
        yield Problem(
            ("sasl",), '"EXTERNAL"', "a client_ca in tls, as certificates are what it checks"
        )
    if "ANONYMOUS" in listen.mechanisms and not listen.is_loopback:
        yield Problem(
            ("sasl",), f'"ANONYMOUS" on {listen.endpoint}', "a loopback host, or users who log in"
        )
    binding = [each for each in SCRAM if MECHANISMS[each].binds and each in (listen.sasl or ())]
    if binding and listen.tls is None:
        yield Problem(("sasl",), f'"{binding[0]}" without TLS', "a table tls with it")
    if not can_log_in.intersection(listen.mechanisms):
        # What is offered by default for verifiers or tokens need not be told where there are none.
        unsaid = (*SCRAM, OAUTHBEARER)
        named = [each for each in listen.mechanisms if listen.sasl or each not in unsaid]
        yield Problem(
            ("sasl",),
            f"{' and '.join(named)} on {listen.endpoint}, where nobody can log in",
            "a [[user]]; `cogwork passwd NAME` prints one",
        )


def _tls(listen: Listen) -> Iterator[Problem]:
    """Check that there are certificates where TLS is spoken, and only there."""
    is_tls = listen.transport in ("amqps", "wss")
    transport = f'transport = "{listen.transport}"'
    if is_tls and listen.tls is None:
        yield Problem(("tls",), "nothing", f"a table with a certificate, for {transport}")
    if listen.require_tls and not is_tls:
        yield Problem(("require_tls",), f"true for {transport}", 'transport = "amqps" or "wss"')
    if listen.tls is not None and not is_tls:
        yield Problem(("tls",), f"a table for {transport}", 'transport = "amqps" or "wss" with it')
    for problem in () if listen.tls is None else check_tls(listen.tls):
        yield problem.below("tls")


def _networks(listen: Listen) -> Iterator[Problem]:
    """Check who may connect, and who may say for whom."""
    is_at_path = listen.path is not None
    if listen.proxy_protocol and not listen.proxy_from and not is_at_path:
        expected = 'the networks of the load balancers, such as ["10.0.0.0/8"]'
        yield Problem(("proxy_from",), "nothing", expected)
    if listen.proxy_from and not listen.proxy_protocol:
        yield Problem(("proxy_from",), "networks", "proxy_protocol = true with them")
    if listen.proxy_from and is_at_path:
        yield Problem(("proxy_from",), "networks at a path", "a port, or the mode of the path")
    for key in ("proxy_from", "allow", "deny"):
        networks = getattr(listen, key)
        if networks and is_at_path and not listen.proxy_protocol:
            yield Problem((key,), "networks at a path", "a port, or the mode of the path")
        for at, text in enumerate(networks):
            try:
                network_of(text)
            except ValueError as error:
                found = f'"{text:.80}", where {error}'
                yield Problem((key, at), found, 'a network, such as "10.1.0.0/16" or "::1"')


def _place(listen: Listen) -> Iterator[Problem]:
    """Check that a listener is at a port or at a path, and that what it says is of that."""
    if listen.path is None:
        if listen.port is None:
            yield Problem(("port",), "nothing", "an integer from 0 to 65535, or a path")
        if listen.mode is not None:
            yield Problem(("mode",), f'"{listen.mode}" at a port', "a path with it")
        return
    if listen.port is not None:
        yield Problem(("port",), f"{listen.port} beside a path", "one of them")
    if listen.transport != "amqp":
        yield Problem(("transport",), f'"{listen.transport}" at a path', '"amqp", or a port')
    if listen.advertise is not None:
        yield Problem(("advertise",), f'"{listen.advertise}" at a path', "a port")
    if listen.mode is not None and not _MODE.fullmatch(listen.mode):
        yield Problem(("mode",), f'"{listen.mode}"', 'permissions in octal, such as "660"')


def _advertised(listen: Listen) -> Iterator[Problem]:
    if listen.advertise is None:
        return
    try:
        host_of(listen.advertise)
    except ValueError:
        yield Problem(("advertise",), f'"{listen.advertise}"', "HOST:PORT")


def _links(configuration: Configuration) -> Iterator[Problem]:
    endpoints: list[str | None] = []
    for at, link in enumerate(configuration.links):
        for problem in _link(link, configuration.listeners):
            yield problem.below("link", at)
        endpoints.append(_endpoint_of(link))
    yield from twice("link", "url", endpoints)


def _link(link: Link, listeners: Sequence[Listen]) -> Iterator[Problem]:
    try:
        target = link.target
    except BadLinkUrl as error:
        yield Problem(("url",), error.found, error.expected)
        return
    if any(target.leads_to(each.path or each.host, each.port or 0) for each in listeners):
        yield Problem(("url",), f'"{target}", where this container listens', "another container")
    files = {
        key: getattr(link, key)
        for key in ("certificate", "key", "ca", "key_password", "crl_file", "ciphers")
    }
    given = next((key for key, name in files.items() if name is not None), None)
    if given is not None and target.scheme != "amqps":
        found = "this" if given in ("key_password", "ciphers") else "a file"
        yield Problem((given,), f'{found} for "{target}"', "an amqps:// url with it")
    for key in ("key", "key_password"):
        if getattr(link, key) is not None and link.certificate is None:
            yield Problem(("certificate",), "nothing", "the certificate of the key")
    yield from check_ciphers_of(link)
    if link.token_file is not None and not target.is_private:
        yield Problem(("token_file",), f'a token for "{target}"', "an amqps:// url with it")
    yield from _link_password(link, target)


def _link_password(link: Link, target: LinkUrl) -> Iterator[Problem]:
    """Check that a password beside the URL has a user there, and is the only one."""
    if link.password is None:
        return
    key = "password" if link.password_file is None else "password_file"
    user, expected = LinkUrl.parse(link.url), "a user in url, such as amqps://north@south.example"
    if user.user is None:
        yield Problem((key,), f'a password for "{target}"', expected)
    elif user.password is not None:
        yield Problem((key,), "a password beside the one in url", "one of the two")


def _endpoint_of(link: Link) -> str | None:
    try:
        return link.target.endpoint
    except BadLinkUrl:
        return None


def _user(user: User) -> Iterator[Problem]:
    if user.password_hash is not None:
        try:
            check_hash(user.password_hash)
        except PasswordHashError as error:
            yield Problem(("password_hash",), str(error), "what `cogwork passwd NAME` prints")
    yield from _verifiers(user.scram_verifiers)
    if user.containers is not None and not user.mesh:
        yield Problem(("containers",), "an array for a user", "mesh = true with it")
    yield from named_twice("containers", user.containers)
    yield from named_twice("groups", user.groups)
    yield from _group(user)


def _verifiers(lines: Sequence[str]) -> Iterator[Problem]:
    expected = "what `cogwork passwd NAME` prints"
    hashes: set[str] = set()
    for at, line in enumerate(lines):
        try:
            hash_name = parse_verifier(line).hash_name
        except VerifierError as error:
            yield Problem(("scram_verifiers", at), str(error), expected)
            continue
        if hash_name in hashes:
            yield Problem(("scram_verifiers", at), "a second verifier for one hash", expected)
        hashes.add(hash_name)


def _group(group: Group | User) -> Iterator[Problem]:
    yield from _permissions("permissions", group.permissions)
    yield from _permissions("deny", group.deny)


def _groups_of_users(configuration: Configuration) -> Iterator[Problem]:
    known = {group.name for group in configuration.groups}
    for at, user in enumerate(configuration.users):
        for number, name in enumerate(user.groups):
            if name not in known:
                yield Problem(("user", at, "groups", number), f'"{name}"', "a [[group]]'s name")


def _anonymous(anonymous: Anonymous) -> Iterator[Problem]:
    granted = anonymous.permissions or ()
    for problem in _permissions("permissions", granted):
        yield problem.below("anonymous")
    for at, permission in enumerate(granted):
        if names_user(permission.address):
            path = ("anonymous", "permissions", at, "address")
            yield Problem(path, f'"{permission.address}"', f"no {USER} where nobody has a name")


def _permissions(key: str, permissions: Sequence[Permission]) -> Iterator[Problem]:
    for at, permission in enumerate(permissions):
        for problem in _pattern("address", permission.address):
            yield problem.below(key, at)


def _virtual_host(vhost: Configuration | Vhost) -> Iterator[Problem]:
    """Check what the default virtual host and every other one have alike."""
    yield from each("address", vhost.addresses, _address)
    yield from twice("address", "prefix", [_same(each.prefix) for each in vhost.addresses])
    yield from twice("address", "pattern", [_bare(each.pattern) for each in vhost.addresses])
    yield from each("queue", vhost.queues, _queue)
    yield from twice("queue", "address", [_bare(queue.address) for queue in vhost.queues])
    yield from each("stream", vhost.streams, _stream)
    yield from twice("stream", "address", [_bare(stream.address) for stream in vhost.streams])
    yield from check_exchanges(vhost)
    yield from check_policies(vhost)
    yield from each("schema", vhost.schemas, lambda it: _pattern("address", it.address))
    yield from twice("schema", "address", [_bare(it.address) for it in vhost.schemas])
    yield from each("node", vhost.nodes, _node)
    yield from twice("node", "address", [_bare(node.address) for node in vhost.nodes])
    yield from find_misplaced(vhost)


def _node(node: Node) -> Iterator[Problem]:
    yield from _visible("address", node.address)
    yield from _short("address", node.address)
    yield from _begun("address", node.address)
    yield from check_kind(node.kind)


def _address(address: Address) -> Iterator[Problem]:
    if address.prefix is None and address.pattern is None:
        yield Problem(("prefix",), "nothing", "a prefix or a pattern")
    if address.prefix is not None and address.pattern is not None:
        yield Problem(("pattern",), "a pattern besides a prefix", "one of the two")
    if address.pattern is not None:
        yield from _visible("pattern", address.pattern)
        yield from _short("pattern", address.pattern)
        yield from _pattern("pattern", address.pattern)
    if address.prefix is not None:
        yield from _plain("prefix", address.prefix)
    if address.distribution is not None and (address.fanout or address.bias):
        yield Problem(("distribution",), "a distribution besides fanout or bias", "one of the two")
    if address.bias is not None and address.fanout != "single":
        yield Problem(("bias",), f'"{address.bias}"', 'fanout = "single" with it')
    if address.kind is not None:
        yield from check_kind(address.kind)
    if address.dead_letter is not None:
        yield from _plain("dead_letter", address.dead_letter)
    yield from named_twice("replicas", address.replicas)
    yield from _home(address)


def _home(options: Queue | Address) -> Iterator[Problem]:
    if options.home is not None and options.durability == "replicated":
        yield Problem(("home",), f'"{options.home}"', 'no home with durability = "replicated"')


def _queue(queue: Queue) -> Iterator[Problem]:
    yield from _plain("address", queue.address)
    yield from named_twice("replicas", queue.replicas)
    yield from _home(queue)
    if queue.dead_letter is not None:
        yield from _plain("dead_letter", queue.dead_letter)
    if _bare(queue.dead_letter) == _bare(queue.address):
        yield Problem(("dead_letter",), "the queue's own address", "another address")


def _telemetry(configuration: Configuration) -> Iterator[Problem]:
    if configuration.telemetry is not None:
        for problem in _plain("stream", configuration.telemetry.stream):
            yield problem.below("telemetry")


def _security_log(configuration: Configuration) -> Iterator[Problem]:
    options = configuration.security_log
    if options is not None and options.to == "file" and options.path is None:
        yield Problem(("security_log", "path"), "nothing", 'the name of the file for to = "file"')
    if options is not None and options.to == "stream" and options.path is not None:
        expected = f'no path: to = "stream" writes to stream/{SECURITY_STREAM}'
        yield Problem(("security_log", "path"), f'"{options.path}"', expected)


def _audit(audit: Audit, vhosts: set[str]) -> Iterator[Problem]:
    yield from _pattern("queue", audit.queue)
    yield from _plain("stream", audit.stream)
    if audit.vhost is not None and audit.vhost not in vhosts:
        yield Problem(("vhost",), f'"{audit.vhost}"', "the name of a [[vhost]]")
    if audit.sample > 1:
        yield Problem(("sample",), f"{audit.sample:g}", "at most 1")


def _stream(stream: Stream) -> Iterator[Problem]:
    yield from _plain("address", stream.address)
    yield from named_twice("replicas", stream.replicas)
    yield from check_engine_of(stream)
    for at, pattern in enumerate(stream.capture):
        for problem in _pattern("capture", pattern):
            yield problem._replace(path=("capture", at))


def _pattern(key: str, pattern: str) -> Iterator[Problem]:
    word = misplaced_wildcard(pattern)
    if word is not None:
        yield Problem((key,), f'the word "{word}"', "* and # as whole words only")
    if pattern == "/":
        yield Problem((key,), '"/"', "words, * and # among them")
    yield from _begun(key, pattern)


def _plain(key: str, address: str) -> Iterator[Problem]:
    yield from _visible(key, address)
    yield from _short(key, address)
    yield from _begun(key, address)
    if "*" in address or "#" in address:
        yield Problem((key,), f'"{address}"', "no wildcards here")


def _short(key: str, address: str) -> Iterator[Problem]:
    if len(address) > MAX_ADDRESS_LENGTH:
        yield Problem((key,), f"{len(address)} characters", f"at most {MAX_ADDRESS_LENGTH}")


def _begun(key: str, address: str) -> Iterator[Problem]:
    if address.startswith("//"):
        yield Problem((key,), f'"{address:.80}"', "one / before the name at most")


def _visible(key: str, address: str) -> Iterator[Problem]:
    """Find what would do something to a terminal, or to who reads a log."""
    if not address.isprintable():
        yield Problem((key,), ascii(address)[:80], "characters that can be seen")


def _bare(address: str | None) -> str | None:
    """Write an address in one way: a `/` before it means nothing."""
    return None if address is None else address.removeprefix("/")


def _same(prefix: str | None) -> str | None:
    """Write a prefix in one way: separators at its ends mean nothing."""
    return None if prefix is None else prefix.removeprefix("/").rstrip("/.")

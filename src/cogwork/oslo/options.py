"""The options of the group `oslo_messaging_amqp`: old names and defaults, and a few new ones."""

from __future__ import annotations

from oslo_config import cfg

__all__ = ("GROUP", "OPTIONS", "list_opts")

GROUP = "oslo_messaging_amqp"

_CONNECTION = [
    cfg.StrOpt("container_name", help="The container-id in AMQP's open; made up where not given."),
    cfg.IntOpt(
        "idle_timeout",
        default=30,
        min=0,
        help="Seconds of silence after which a connection counts as lost, and the next host of the "
        "URL is tried; 0: never.",
    ),
    cfg.BoolOpt("trace", default=False, help="Has no meaning any more: see the log of the client."),
    cfg.IntOpt(
        "connection_retry_interval",
        default=1,
        min=1,
        help="Seconds to wait after all hosts of the URL were tried in vain.",
    ),
    cfg.IntOpt(
        "connection_retry_backoff",
        default=2,
        min=0,
        help="Seconds by which each further wait is longer than the one before it.",
    ),
    cfg.IntOpt(
        "connection_retry_interval_max", default=30, min=1, help="Seconds that no wait exceeds."
    ),
    cfg.BoolOpt(
        "pseudo_vhost",
        default=True,
        help="Whether the virtual host of the URL becomes a part of addresses, for intermediaries "
        "that know none; else it is the hostname in AMQP's open.",
    ),
]

_SECURITY = [
    cfg.BoolOpt("ssl", default=False, help="Whether to speak TLS."),
    cfg.StrOpt("ssl_ca_file", default="", help="PEM file with the authorities to trust."),
    cfg.StrOpt("ssl_cert_file", default="", help="PEM file with the certificate to show."),
    cfg.StrOpt("ssl_key_file", default="", help="PEM file with the private key for it."),
    cfg.StrOpt("ssl_key_password", secret=True, help="What the private key is encrypted with."),
    cfg.BoolOpt(
        "ssl_verify_vhost",
        default=False,
        help="Whether the server's certificate names the virtual host, and not the host.",
    ),
    cfg.StrOpt(
        "sasl_mechanisms",
        default="",
        help="Mechanisms that may be used, with blanks between: SCRAM-SHA-512, SCRAM-SHA-256 (each "
        "with -PLUS, too), PLAIN, OAUTHBEARER, EXTERNAL, ANONYMOUS; empty for the strongest that "
        "suits.",
    ),
    cfg.StrOpt(
        "sasl_token_file",
        default="",
        help="New: file with a token to log in by (SASL OAUTHBEARER), read for each connection; in "
        "place of a password in the URL.",
    ),
    cfg.StrOpt("sasl_config_dir", default="", help="Has no meaning any more."),
    cfg.StrOpt("sasl_config_name", default="", help="Has no meaning any more."),
    cfg.StrOpt(
        "sasl_default_realm",
        default="",
        help="Added to a user's name that has no realm: user@realm.",
    ),
]

_TIMES = [
    cfg.IntOpt(
        "link_retry_delay",
        default=10,
        min=1,
        help="Seconds to wait before a link is attached again that was refused or ended.",
    ),
    cfg.IntOpt(
        "default_reply_retry",
        default=0,
        min=-1,
        help="How often a reply is sent again that nobody took; -1: until its time is over.",
    ),
    cfg.IntOpt(
        "default_reply_timeout", default=30, min=1, help="Seconds that a reply may need to be sent."
    ),
    cfg.IntOpt(
        "default_send_timeout",
        default=30,
        min=1,
        help="Seconds that a cast may need to be sent: to connect, and to find a server.",
    ),
    cfg.IntOpt(
        "default_notify_timeout",
        default=30,
        min=1,
        help="Seconds that a notification may need to be accepted.",
    ),
    cfg.IntOpt(
        "default_sender_link_timeout",
        default=600,
        min=1,
        help="Seconds after which a link is detached that nothing was sent on.",
    ),
]

_ADDRESSES = [
    cfg.StrOpt(
        "addressing_mode",
        default="dynamic",
        choices=["legacy", "routable", "dynamic"],
        help="How addresses look: with dots for brokers (legacy), with slashes for routers "
        "(routable), or as it suits what is at the other end (dynamic).",
    ),
    cfg.StrOpt("server_request_prefix", default="exclusive", help="Legacy: one server."),
    cfg.StrOpt("broadcast_prefix", default="broadcast", help="Legacy: all servers of a topic."),
    cfg.StrOpt("group_request_prefix", default="unicast", help="Legacy: any server of a topic."),
    cfg.StrOpt("rpc_address_prefix", default="openstack.org/om/rpc", help="Routable: of RPC."),
    cfg.StrOpt(
        "notify_address_prefix",
        default="openstack.org/om/notify",
        help="Routable: of notifications.",
    ),
    cfg.StrOpt("multicast_address", default="multicast", help="Routable: all servers of a topic."),
    cfg.StrOpt("unicast_address", default="unicast", help="Routable: one server."),
    cfg.StrOpt("anycast_address", default="anycast", help="Routable: any server of a topic."),
    cfg.StrOpt(
        "default_notification_exchange",
        help="The exchange of notifications whose target names none; else control_exchange, else "
        "notify.",
    ),
    cfg.StrOpt(
        "default_rpc_exchange",
        help="The exchange of RPC whose target names none; else control_exchange, else rpc.",
    ),
    cfg.StrOpt(
        "reply_prefix",
        help="New: what addresses of replies begin with, at an intermediary without dynamic "
        "sources; where not given, a dynamic source is asked for.",
    ),
    cfg.ListOpt(
        "notification_pools",
        default=[],
        help="New: the pools of notification listeners. Each gets a copy of every notification "
        "that this process sends.",
    ),
]

_TRACES = [
    cfg.BoolOpt(
        "tracing",
        default=False,
        help="New: make spans and metrics by OpenTelemetry of what is sent and of the methods that "
        "run, and carry their context (needs cogwork[otel]).",
    ),
]

_CREDIT = [
    cfg.IntOpt("reply_link_credit", default=200, min=1, help="Replies that may be on their way."),
    cfg.IntOpt("rpc_server_credit", default=100, min=1, help="Requests ahead, for each link."),
    cfg.IntOpt(
        "notify_server_credit", default=100, min=1, help="Notifications ahead, for each link."
    ),
    cfg.MultiStrOpt(
        "pre_settled",
        default=["rpc-cast", "rpc-reply"],
        help="What is sent without asking what became of it: rpc-call, rpc-cast, rpc-reply, "
        "notify.",
    ),
]

OPTIONS = [*_CONNECTION, *_SECURITY, *_TIMES, *_ADDRESSES, *_TRACES, *_CREDIT]


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """List the options for `oslo-config-generator` (entry point `oslo.config.opts`)."""
    return [(GROUP, OPTIONS)]

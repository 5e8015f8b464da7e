"""What a cluster file opens to others, and what it gives away."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from nowcastlab.cluster.commands import HEAD, WORKERS, Command, commands_of, nodes_of, settings
from nowcastlab.cluster.document import Document, Finding

CLOUDS = ("aws", "gcp", "azure")
WIDEST = 16  # bits of prefix: 65,536 addresses is no longer "my own"
TOKEN_FILE = ".ray/auth_token"
SECRETS = {
    "an AWS access key": re.compile(r"\bA(?:KIA|SIA)[0-9A-Z]{16}\b"),
    "an AWS secret key": re.compile(r"aws_secret_access_key\W+[\w/+]{20,}", re.IGNORECASE),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "a password": re.compile(r"(?:\bpassword\s*[=:]\s*[^\s$]|://[^/\s:@]+:[^/\s@$]+@)", re.IGNORECASE),
    "the token itself": re.compile(r"\bRAY_AUTH_TOKEN=[^\s$'\"]"),
}


def open_doors(document: Document) -> Iterator[Finding]:
    """Address ranges, firewalls and servers that let strangers in."""
    yield from everybody(document)
    yield from _networks(document)
    yield from _listeners(document)


def everybody(document: Document) -> Iterator[Finding]:
    """Address ranges that are everybody, or nearly."""
    for place, value in document.scalars():
        for text in re.findall(r"(?<![\w.:])[0-9a-fA-F.:]+/\d{1,3}(?![\w.])", str(value)):
            try:
                network = ipaddress.ip_network(text, strict=False)
            except ValueError:
                continue
            bits = network.prefixlen if network.version == 4 else network.prefixlen - 32
            if bits < WIDEST and not (network.prefixlen and network.is_private):
                whom = "everybody" if not network.prefixlen else f"{network.num_addresses:,} addresses"
                yield document.finding(f"{text} lets {whom} in. Name your own, as 203.0.113.7/32.", *place, of=text)


def _networks(document: Document) -> Iterator[Finding]:
    """The firewalls that clouds put up when none is named."""
    kind = document.get("provider", "type")
    types = document.mapping("available_node_types")
    if kind == "aws":
        if document.get("provider", "security_group"):
            yield document.finding(
                "Ray adds these rules to its own, which open ssh to 0.0.0.0/0; it does not put them in their place. "
                "Make the group yourself and name it in each node_config: SecurityGroupIds.",
                "provider",
                "security_group",
            )
        for name in types:
            place = ("available_node_types", name, "node_config")
            if not any(
                document.get(*place, key) for key in ("SecurityGroupIds", "NetworkInterfaces", "LaunchTemplate")
            ):
                yield document.finding(
                    f"{name} has no SecurityGroupIds: Ray would make a group whose ssh is open to everybody.", *place
                )
    if kind == "gcp":
        for name in types:
            place = ("available_node_types", name, "node_config")
            interfaces = document.sequence(*place, "networkInterfaces")
            if not any(isinstance(each, dict) and each.get("subnetwork") for each in interfaces):
                yield document.finding(
                    f"{name} names no subnetwork: it would join the project's default network, whose firewall lets ssh "
                    "in from everywhere. Give networkInterfaces with a subnetwork of your own.",
                    *place,
                    "networkInterfaces",
                )


def _listeners(document: Document) -> Iterator[Finding]:
    """Servers that would answer strangers: the dashboard runs code for whoever reaches it, MLflow asks for no name."""
    for command in commands_of(document):
        for option in re.findall(r"--[\w-]*host[=\s]+(?:0\.0\.0\.0|::|\[::\]|\*)", command.text):
            yield document.finding(
                f"`{' '.join(option.split())}` listens on every interface. Use 127.0.0.1, and an ssh tunnel to watch.",
                *command.place,
                of=option.split()[-1].split("=")[-1],
            )
    if document.get("provider", "type") in CLOUDS and not document.get("head_start_ray_commands"):
        yield document.finding(
            "There are no head_start_ray_commands: the provider's own bind the dashboard to 0.0.0.0. Write them out, "
            "with --dashboard-host=127.0.0.1.",
            "provider",
        )


def missing_token(document: Document) -> Iterator[Finding]:
    """Every node must ask for the token, hold it, and keep it to itself."""
    commands = commands_of(document)
    asked = nodes_of([command for command, value in settings(commands, "RAY_AUTH_MODE") if value == "token"])
    for command, value in settings(commands, "RAY_AUTH_MODE"):
        if value != "token":
            yield document.finding(
                f"RAY_AUTH_MODE={value} lets anybody run code. Use token.", *command.place, of="RAY_AUTH_MODE"
            )
    for node, name in ((HEAD, "head_start_ray_commands"), (WORKERS, "worker_start_ray_commands")):
        start = _start(commands, name)
        if node not in asked:
            where = start.place if start else (name,)
            yield document.finding(
                f"Started without RAY_AUTH_MODE=token ({node}): whoever reaches the ports may run code. Set it before "
                "`ray start`.",
                *where,
                of="ray start",
            )
    if not any(str(path).endswith(TOKEN_FILE) for path in document.mapping("file_mounts")):
        yield document.finding(
            f"No node gets the token. Add to file_mounts:  ~/{TOKEN_FILE}: ~/{TOKEN_FILE}", "file_mounts"
        )
    closed = [c for c in commands if re.search(rf"chmod\s+0?[46]00\s[^;&|]*{re.escape(TOKEN_FILE)}", c.text)]
    if nodes_of(closed) < {HEAD, WORKERS}:
        yield document.finding(
            f"The token stays readable to all on the nodes. Add to setup_commands:  chmod 600 ~/{TOKEN_FILE}",
            "setup_commands",
        )


def secrets(document: Document) -> Iterator[Finding]:
    """Keys, passwords and tokens that are written out in the file."""
    for place, value in document.scalars():
        for what, pattern in SECRETS.items():
            found = pattern.search(str(value))
            if found:
                yield document.finding(
                    f"This is {what}, in a file that people share. Keep it out: a file_mount, a role, a secret.",
                    *place,
                    of=found[0].split("\n")[0][:20],
                )


def _start(commands: list[Command], name: str) -> Command | None:
    return next((c for c in commands if c.place[0] == name and "ray start" in c.text), None)

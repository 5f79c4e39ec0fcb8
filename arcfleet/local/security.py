"""Ready-made doors: SCRAM, TLS and mutual TLS listeners, and the authoriser. For tests, not for production."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from arcfleet.local.errors import LocalKafkaError, SettingError
from arcfleet.local.java import find_keytool
from arcfleet.local.settings import SCRAM_MECHANISM, Listener, Setting

# The key stores are throw-away files of a test; keytool insists on a password of six characters or more.
STORE_PASSWORD = "arcfleet-local"  # noqa: S105
_KEYTOOL_DEADLINE_S = 60.0
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Identity:
    """A key pair with a self-signed certificate for 127.0.0.1 and localhost."""

    name: str  # its principal is User:CN=<name>
    store: Path  # PKCS#12, key and certificate, opened by STORE_PASSWORD
    certificate: Path  # PEM, to be trusted by the other side

    def client_settings(self, trusted: Path) -> dict[str, str]:
        """librdkafka settings of a client that trusts the certificate `trusted` and shows this identity."""
        return {
            "ssl.ca.location": str(trusted),
            "ssl.keystore.location": str(self.store),
            "ssl.keystore.password": STORE_PASSWORD,
        }


def make_identity(folder: Path, name: str) -> Identity:
    """Writes a new key pair into `folder` with the key tool that comes with Java (about a second)."""
    if not _NAME.fullmatch(name):
        raise SettingError(f"{name!r} cannot name an identity: use letters, digits, - and _")
    identity = Identity(name, folder / f"{name}.p12", folder / f"{name}.pem")
    store = ["-keystore", str(identity.store), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD, "-alias", name]
    _keytool(
        *("-genkeypair", *store, "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "30"),
        *("-dname", f"CN={name}", "-ext", "SAN=IP:127.0.0.1,DNS:localhost"),
    )
    _keytool("-exportcert", *store, "-rfc", "-file", str(identity.certificate))
    return identity


def tls_listener(server: Identity, *, trusted: Sequence[Identity] = ()) -> Listener:
    """Encrypted; with `trusted` clients must show one of these identities (mutual TLS)."""
    return Listener("SSL", _tls(server, trusted))


def scram_listener(server: Identity | None = None) -> Listener:
    """Users with passwords (SCRAM-SHA-512), made by LocalBroker's `scram`; encrypted if a server identity is given."""
    settings: dict[str, Setting] = {
        "sasl.enabled.mechanisms": SCRAM_MECHANISM,
        f"{SCRAM_MECHANISM.lower()}.sasl.jaas.config": f"{_SCRAM_LOGIN} required;",
    }
    if server is None:
        return Listener("SASL_PLAINTEXT", settings)
    return Listener("SASL_SSL", settings | _tls(server, ()))


def authoriser(super_users: Sequence[str] = ()) -> dict[str, Setting]:
    """Settings that refuse whatever no ACL allows. Users of the plain listener are ANONYMOUS and may do everything, as
    the broker itself comes in by it: tests grant rights there, and try them through another listener."""
    users = ["User:ANONYMOUS", *(f"User:{name}" for name in super_users)]
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(users),
    }


def _tls(server: Identity, trusted: Sequence[Identity]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(server.store),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    if trusted:
        settings |= {
            "ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "".join(one.certificate.read_text(encoding="ascii") for one in trusted),
        }
    return settings


def _keytool(*arguments: str) -> None:
    # The key tool beside the Java in use; all arguments are ours.
    answer = subprocess.run(  # noqa: S603
        [find_keytool(), *arguments], capture_output=True, text=True, timeout=_KEYTOOL_DEADLINE_S, check=False
    )
    if answer.returncode != 0:
        raise LocalKafkaError(f"keytool {arguments[0]} failed: {(answer.stdout + answer.stderr).strip()}")

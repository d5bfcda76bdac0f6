"""What of this machine is a problem before it stops something: full disks, and certificates that end."""

import shutil
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509

from lockstep.errors import LockstepError
from lockstep.kafka_clients import java_properties
from lockstep.status.model import Disk

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Where a Java client's properties name files with certificates.
_CERTIFICATES = ("ssl.truststore.location", "ssl.keystore.location")


def disks(settings: "Settings") -> dict[str, Disk]:
    """By folder, its disk: of the home, and of the lake where that is another disk of this machine."""
    found: dict[int, tuple[str, Disk]] = {}
    for folder in (settings.home, Path(settings.lake)):
        # A lake that is a URI of a store is no folder here.
        if folder.is_dir():
            usage = shutil.disk_usage(folder)
            found.setdefault(folder.stat().st_dev, (str(folder), Disk(usage.total, usage.free)))
    return dict(found.values())


def certificates(settings: "Settings") -> dict[str, datetime]:
    """By PEM file that Kafka's client properties name, when the first of its certificates is not valid any more (UTC).

    Raises:
        CertificateInvalid: a file cannot be read, or has no certificate.
        PropertiesInvalid: the properties cannot be read.
    """
    properties = java_properties(settings)
    return {file: _ends(Path(file)) for name in _CERTIFICATES if (file := properties.get(name))}


class CertificateInvalid(LockstepError):
    """A file that should have certificates cannot be read as such."""


def _ends(file: Path) -> datetime:
    try:
        return min(c.not_valid_after_utc for c in x509.load_pem_x509_certificates(file.read_bytes()))
    except (OSError, ValueError) as error:
        raise CertificateInvalid(
            f"{file}, which LOCKSTEP_KAFKA_CONFIG names, has no readable certificate: {error}"
        ) from error

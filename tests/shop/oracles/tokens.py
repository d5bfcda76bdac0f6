"""What stands for a personal value from silver on: the definition in the documentation, computed anew."""

import hashlib
import hmac

from lockstep import settings


def token(value: str | None) -> str | None:
    """The first half of the HMAC-SHA-256 under the platform's key, in hex."""
    if value is None:
        return None
    key = settings.load().token_key.get_secret_value()
    return hmac.new(key.encode(), value.encode(), hashlib.sha256).hexdigest()[:32]

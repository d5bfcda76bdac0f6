"""Properties files that a setting names, by Java's rules: Kafka's and Spark's."""

from pathlib import Path

import javaproperties

from lockstep.errors import LockstepError


class PropertiesInvalid(LockstepError):
    """A properties file cannot be read."""


def read(path: Path, setting: str) -> dict[str, str]:
    """Read a Java properties file; it must be UTF-8.

    Args:
        setting: the variable that names the file.

    Raises:
        PropertiesInvalid: the file cannot be read, or one of its escapes is wrong.
    """
    try:
        return javaproperties.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PropertiesInvalid(
            f"The properties {path} cannot be read ({error.strerror}); correct {setting}"
        ) from error
    except UnicodeDecodeError as error:
        raise PropertiesInvalid(
            f"The properties {path} ({setting}) are not UTF-8 ({error.reason} at byte {error.start}); "
            "write such a character as a \\uXXXX escape"
        ) from error
    except javaproperties.InvalidUEscapeError as error:
        raise PropertiesInvalid(
            f"The properties {path} ({setting}) have a wrong escape ({error}); write \\u with four hexadecimal digits, "
            "and a backslash as two"
        ) from error

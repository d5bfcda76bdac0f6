"""Bytes as people read them."""

_MEGABYTE = 1e6


def readable(size: int) -> str:
    """Such as ``12.3 MB``, or ``45 kB`` below a tenth of a megabyte."""
    return f"{size / _MEGABYTE:,.1f} MB" if size >= _MEGABYTE / 10 else f"{size / 1e3:,.0f} kB"

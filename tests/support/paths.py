"""Where the checkout is that the tests are in."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

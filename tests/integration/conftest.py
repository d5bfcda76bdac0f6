"""The servers that all integration tests share, and a stream and a view for each test."""

from tests.support.servers import *  # noqa: F403

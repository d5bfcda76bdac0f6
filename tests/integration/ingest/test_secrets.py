"""What the client of Kafka needs to log in is on no page of Spark's UI: it has no login of its own."""

import re

import httpx
import pytest

from lockstep.catalog import connect
from lockstep.ingest.offsets import topic_offsets
from lockstep.ingest.source import read_range, read_stream
from lockstep.ledger.planning import plan
from lockstep.settings import LOOPBACK

PASSWORD = "only-the-broker-may-know-this"


@pytest.fixture
def logged_in(settings, tmp_path):
    """Settings with a login, which a broker without authentication does not ask for."""
    file = tmp_path / "client.properties"
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="{PASSWORD}";'
    file.write_text(f"sasl.jaas.config={jaas}\nssl.key.password={PASSWORD}\n")
    return settings.model_copy(update={"kafka_config": file})


def _pages(address):
    """All pages of the UI, found from its first one on. The newest reads first: the UI forgets the oldest meanwhile."""
    seen, new = {}, ["/SQL/", "/connect/", "/environment/", "/StreamingQuery/", "/jobs/", "/api/v1/applications"]
    with httpx.Client(base_url=address, follow_redirects=True, timeout=60) as client:
        while new:
            path = new.pop(0)
            if path in seen:
                continue
            seen[path] = client.get(path).text
            links = re.findall(r'href="(/(?:connect|SQL|StreamingQuery)/[^"#]+)"', seen[path])
            new = [
                link.replace("&amp;", "&") for link in links if "sort" not in link and "page=" not in link.lower()
            ] + new
    return seen


def test_no_page_shows_the_password_of_kafka(logged_in, stream, shop):
    shop.view("e1", 1)
    shop.flush()
    with connect(logged_in, "test") as spark:
        assert read_range(spark, logged_in, plan([], topic_offsets(logged_in, stream.topic), 10)).count() == 1
        query = read_stream(spark, logged_in, stream.topic).writeStream.format("noop").start()
        try:
            query.processAllAvailable()
            pages = _pages(f"http://{LOOPBACK}:{logged_in.spark_ui_port}")
        finally:
            query.stop()
    assert any(stream.topic in text for text in pages.values()), "the read is on a page"
    assert [path for path, text in pages.items() if PASSWORD in text] == []

"""What Spark sends of Hadoop's configuration with each step."""

from collections import Counter

import httpx

from lockstep.settings import LOOPBACK, Settings


def test_spark_sends_no_defaults_of_yarn_and_mapreduce_with_each_step(settings: Settings) -> None:
    api = f"http://{LOOPBACK}:{settings.spark_ui_port}/api/v1/applications"
    with httpx.Client(trust_env=False, timeout=30) as client:
        (application, *_) = client.get(api).json()
        environment = client.get(f"{api}/{application['id']}/environment").json()
    found = Counter(name.split(".")[0] for name, _ in environment["hadoopProperties"])
    assert found["fs"], "Hadoop's own defaults are there"
    assert found["yarn"] == 0
    assert found["mapreduce"] < 10, "Spark sets a few"

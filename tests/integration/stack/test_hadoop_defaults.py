"""What Spark sends of Hadoop's configuration with each step."""

from collections import Counter

from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import net


def test_spark_sends_no_defaults_of_yarn_and_mapreduce_with_each_step(settings: Settings) -> None:
    api = f"http://{LOOPBACK}:{settings.spark_ui_port}/api/v1/applications"
    (application, *_) = net.ask(api, "Spark's UI").json()
    environment = net.ask(f"{api}/{application['id']}/environment", "Spark's UI").json()
    found = Counter(name.split(".")[0] for name, _ in environment["hadoopProperties"])
    assert found["fs"], "Hadoop's own defaults are there"
    assert found["yarn"] == 0
    assert found["mapreduce"] < 10, "Spark sets a few"

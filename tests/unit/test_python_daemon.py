"""Python workers do not look for modules in archives."""

import sys

from lockstep.python_daemon import leave_out_archives


def test_archives_are_no_longer_on_the_path(monkeypatch):
    monkeypatch.setattr(sys, "path", ["/project", "/jars/spark-core.jar", "/lib/pyspark.zip", "/site-packages"])
    monkeypatch.setattr(sys, "path_importer_cache", {"/project": None, "/jars/spark-core.jar": object()})
    leave_out_archives()
    assert sys.path == ["/project", "/site-packages"]
    assert sys.path_importer_cache == {"/project": None}

from pathlib import Path

from lockstep.catalog import connect


def test_a_session_that_ends_leaves_no_error_in_the_servers_log(settings):
    ids = []
    for _ in range(5):
        with connect(settings, "test") as session:
            session.sql("SELECT 1").collect()
            ids.append(session.session_id)
    said = Path(settings.home, "logs", "spark.log").read_text()
    assert [id for id in ids if id in said] == []

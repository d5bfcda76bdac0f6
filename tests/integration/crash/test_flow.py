"""The independent check of the crash tests sees what it must see."""

from tests.integration.crash.flow import drain, violations

# In this order: each leaves what it has broken.
CHANGES = {
    "I6: gold": "INSERT INTO {gold} SELECT * FROM {gold} LIMIT 1",
    "I5: in silver with other values": "UPDATE {silver} SET session_id = 's2' WHERE _offset < 3",
    "I2: twice in silver": "INSERT INTO {silver} SELECT * FROM {silver} LIMIT 1",
    "I1: in bronze with another value": "UPDATE {bronze} SET value = X'00' WHERE offset = 0",
}


def test_one_wrong_row_is_seen_in_each_layer(spark, settings, stream, view, traffic):
    traffic.burst(20)
    drain(settings, stream, [view], "run")
    assert violations(settings, stream, view, traffic.sent) == []
    tables = {"gold": f"gold.{view.name}"} | {layer: f"{layer}.{stream.name}" for layer in ("bronze", "silver")}
    for invariant, statement in CHANGES.items():
        before = violations(settings, stream, view, traffic.sent)
        assert not any(sentence.startswith(invariant) for sentence in before)
        spark.sql(statement.format(**tables))
        after = violations(settings, stream, view, traffic.sent)
        assert any(sentence.startswith(invariant) for sentence in after), after

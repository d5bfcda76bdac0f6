"""What a worker of a share group does with a task."""

from confluent_kafka import AcknowledgeType

from shop.readers.share import verdict


def test_a_task_is_accepted_released_once_or_rejected_for_good():
    assert verdict("plain", 1) == AcknowledgeType.ACCEPT
    assert [verdict("again", deliveries) for deliveries in (1, 2)] == [AcknowledgeType.RELEASE, AcknowledgeType.ACCEPT]
    assert verdict("poison", 1) == AcknowledgeType.REJECT

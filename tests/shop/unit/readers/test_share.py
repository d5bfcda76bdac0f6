"""How a worker of a share group acknowledges a task."""

from confluent_kafka import AcknowledgeType

from shop.readers.share import acknowledgement


def test_a_task_is_accepted_released_once_or_rejected_for_good():
    assert acknowledgement("plain", 1) == AcknowledgeType.ACCEPT
    assert [acknowledgement("again", deliveries) for deliveries in (1, 2)] == [
        AcknowledgeType.RELEASE,
        AcknowledgeType.ACCEPT,
    ]
    assert acknowledgement("poison", 1) == AcknowledgeType.REJECT

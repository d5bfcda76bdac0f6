"""From Kafka to bronze: plan offset ranges, read them, and commit rows and ledger together."""

"""The live layer: each view as a Structured Streaming query over Kafka that writes ``live.<view>``."""

"""The live layer: the same views as Structured Streaming queries over Kafka, into ``live``."""

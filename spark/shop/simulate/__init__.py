"""The simulator: it writes a real retail history to PostgreSQL, and sends seeded traffic around it to Kafka."""

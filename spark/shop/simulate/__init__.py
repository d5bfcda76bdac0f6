"""The shop: a real retail history written to PostgreSQL, and seeded traffic around it sent to Kafka."""

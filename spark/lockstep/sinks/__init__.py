"""Sinks outside the lake: the topic of alerts, webhooks and e-mail. How often something arrives is a setting of each sink."""

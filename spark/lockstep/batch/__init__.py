"""The batch layer: views over silver, into gold."""

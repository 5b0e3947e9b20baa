"""Search for entities, exemplars and mentions similar to a mention."""

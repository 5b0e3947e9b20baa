"""Search for the entities, exemplars and mentions that are similar to a mention."""

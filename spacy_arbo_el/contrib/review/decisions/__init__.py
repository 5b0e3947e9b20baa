"""The journal of decisions on new entities, links and entities, and its replay."""

"""The review of links and new entities, without HTTP."""

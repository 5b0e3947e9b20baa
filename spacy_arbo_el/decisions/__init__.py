"""What people decided on new entities, links and entities: the journal, and its replay."""

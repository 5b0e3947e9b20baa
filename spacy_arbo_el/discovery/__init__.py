"""New entities: clusters of the mentions that no entity of the knowledge base fits."""

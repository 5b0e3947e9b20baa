"""Discovery: clusters of mentions that no entity fits."""

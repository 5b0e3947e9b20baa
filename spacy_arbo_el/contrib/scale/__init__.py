"""Work on large corpora: one map over files, by one process or by Ray.

``map_files`` has workers do the shards whose output is not there yet, so a killed run resumes.
Linking (``worker.py``) and one graph (``one_graph.py``) are this map with other workers. Nothing
but ``on_ray.py`` imports Ray.
"""

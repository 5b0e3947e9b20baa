"""Linking of corpora that are too large for one run: in shards, by one process or by many.

A corpus is cut into shards of documents (``shards.py``). A worker loads the pipeline by its path,
reads a shard, links it and writes it (``worker.py``). A job says the
documents, the settings and the finished shards (``job.py``): a killed run resumes. Workers write
the same
whoever gives them the shards: a loop (``serial.py``) or Ray (``on_ray.py``). Nothing
but ``on_ray.py`` and ``dataset.py`` imports Ray.
"""

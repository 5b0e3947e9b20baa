"""Linking of corpora that are too large for one run: in shards, by one process or by many.

A corpus is cut into shards of documents (``shards.py``). A worker loads the pipeline by its path,
reads a shard, links it and writes it (``worker.py``). A job says what is linked and how, and which
shards are done (``job.py``): a run that was killed goes on where it stopped. Workers write the same
whoever gives them the shards: a loop (``serial.py``) or Ray (``on_ray.py``). Nothing
but ``on_ray.py`` and ``dataset.py`` imports Ray.
"""

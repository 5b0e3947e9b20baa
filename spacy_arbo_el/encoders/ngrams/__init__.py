"""An encoder of averaged n-gram vectors, in thinc and NumPy (DEER, Gillick et al. 2019)."""

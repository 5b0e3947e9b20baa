"""An encoder of averaged n-gram vectors (DEER, 2019).

In thinc and NumPy.
"""

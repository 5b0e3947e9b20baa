"""Search indexes over vectors. Exact ones, and approximate ones that FAISS compresses."""

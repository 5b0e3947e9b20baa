"""Search indexes over vectors: exact ones, and approximate ones that FAISS compresses."""

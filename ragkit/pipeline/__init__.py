"""A RAG app of our own, to start from and to compare variants with. It knows nothing of judges and metrics."""

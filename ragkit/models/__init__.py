"""Chat models and embeddings, each with a fingerprint. Vendors are loaded only when a model of theirs is asked for."""

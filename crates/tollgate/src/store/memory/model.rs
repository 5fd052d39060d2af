//! The sequence lock of a shard under every interleaving and reordering: `make model`.

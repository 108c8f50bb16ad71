"""A deterministic generator of ModelProtos that walks protobuf's descriptors, for tests."""

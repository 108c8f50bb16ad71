"""Protobuf's wire format <-> records, without protobuf: strict in, minimal out, big payloads left in their files."""

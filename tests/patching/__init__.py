"""Tests of patches."""

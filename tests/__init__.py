"""The tests of onnxjson; support code is imported as `tests.…`."""

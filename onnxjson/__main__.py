"""``python -m onnxjson``: the command line."""

from onnxjson.cli import main

if __name__ == "__main__":
    main()

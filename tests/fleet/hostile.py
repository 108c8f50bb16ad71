"""A program for the process of a worker that crashes, hangs or fills the memory, as the name of the model says."""

import os
import resource
import signal
import sys
import time

import msgspec

from onnxjson.fleet.engine import Outcome

if __name__ == "__main__":
    memory = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for line in sys.stdin.buffer:
        name = msgspec.json.decode(line)[0]
        if name == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif name == "hang":
            time.sleep(1000)
        elif name == "allocation":
            bytearray(10 << 30)
        sys.stdout.buffer.write(msgspec.json.encode(Outcome(code=0)) + b"\n")
        sys.stdout.buffer.flush()

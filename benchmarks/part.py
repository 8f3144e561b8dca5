"""Run the `main` of one module: `python -m benchmarks.part MODULE [options]`, a process of its own for each command."""

import importlib
import sys

if __name__ == "__main__":
    sys.argv[0] = sys.argv.pop(1)
    importlib.import_module(f"benchmarks.{sys.argv[0]}").main()

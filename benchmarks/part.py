"""Run the `main` of one module: `python -m benchmarks.part MODULE [options]`, a process of its own for each command."""

import importlib
import sys

if __name__ == "__main__":
    module = sys.argv.pop(1)
    sys.argv[0] = f"python -m benchmarks {module.removesuffix('.run').replace('.', ' ')}"  # as --help shows it
    importlib.import_module(f"benchmarks.{module}").main()

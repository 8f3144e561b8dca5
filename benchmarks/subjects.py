"""Which benchmarks there are, and the commands that a quick and a full pass of each consist of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Benchmark:
    """Commands are run in order as `python benchmarks/SCRIPT.py ...`, the script named without its ending.

    {data}, {python} and {packages} stand for the folder of real data, the peers' Python and its site-packages. Where
    peers are not installed, a command is run without its end, from "--peer" on.
    """

    name: str
    quick: tuple[str, ...]
    full: tuple[str, ...]


SUITE = (
    Benchmark(
        "quantization",
        ("rotation --quick", "quantization --quick --data {data} --peer {python}"),
        ("rotation", "quantization --data {data} --peer {python}"),
    ),
    Benchmark(
        "orthogonal",
        (
            "orthogonal --quick --peers {packages}",
            "orthogonal_tasks --quick --tasks procrustes,pca --methods riemannian,POGO,Landing,geoopt"
            " --data {data} --peers {packages}",
            "orthogonal_drift --quick",
        ),
        (
            "orthogonal --peers {packages}",
            "orthogonal_tasks --data {data} --peers {packages}",
            "orthogonal_drift",
        ),
    ),
    Benchmark("hashing", ("hashing --quick --part table --data {data}",), ("hashing --data {data}",)),
    Benchmark(
        "ordinal",
        ("ordinal --quick --speed --peer {python}",),
        (
            "ordinal --kernel --speed --scale --peer {python}",
            "ordinal --table1 --peer {python}",
            "ordinal --music --retrieval --data {data}",
        ),
    ),
    Benchmark(
        "end_to_end",
        ("end_to_end --quick --sets ml100k --parts quality --seeds 1 --data {data}",),
        ("end_to_end --data {data}",),
    ),
    Benchmark("scale", ("scale --quick --only rates",), ("scale", "export --data {data}")),
    Benchmark(
        "two_tower",
        ("two_tower --quick --sets ml100k --data {data} --peer-python {python}", "two_tower --quick --scaling"),
        (
            "two_tower --sets ml100k --data {data} --peer-python {python}",
            "two_tower --sets gowalla --seconds 40 --data {data} --peer-python {python}",
            "two_tower --scaling",
            "two_tower --cold",
        ),
    ),
    Benchmark("papers", (), ("papers/__main__ --run --data {data}",)),  # last: it reads what the others wrote
)

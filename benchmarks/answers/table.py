"""Searches among some of the rows, alarms about drift, new codes, and bridges between encoders."""

from collections.abc import Iterable

from benchmarks.table import Results, Table, number


def tables(results: Results) -> Iterable[Table]:
    found = results.read("answers_among")
    if found:
        table = Table(
            "answers-among",
            "Search among some of the rows, beside FAISS's IDSelector",
            ["codes", "rows allowed", "who", "CPU ms a query", "recall 10@10", "places filled"],
            "answers_among",
            "20,000 SIFT rows, 100 queries, one thread.",
        )
        for row in found:
            cells = [number(row.get(name)) for name in ("ms_a_query", "recall", "filled")]
            table.rows.append([row["kind"], f"{row['share']:.0%}", row["who"], *cells])
        yield table
    found = results.read("answers_watch")
    if found:
        table = Table(
            "answers-watch",
            "How often `nearkin watch` finds a drift",
            [
                "drift",
                "new rows",
                "draws",
                "called",
                "of draws with 2 points or more",
                "points that learning again gains",
            ],
            "answers_watch",
            "2,000 rows on 16 axes, 3,000 new rows, product codes of 2 bytes.",
        )
        for row in found:
            gain = f"{100 * row['mean_gain']:+.1f} (sd {100 * row['sd_gain']:.1f})"
            large = f"{row['large_called']} of {row['large']}"
            kind = "of the same kind" if row["drift"] is None else "drifted"
            table.rows.append([row["data"], kind, str(row["draws"]), str(row["called"]), large, gain])
        yield table
    found = results.read("answers_refresh")
    if found:
        table = Table(
            "answers-refresh",
            "New codes for rows that drifted",
            ["drift", "codes", "recall 10@10", "share of the gain", "share of the time", "CPU seconds"],
            "answers_refresh",
            "Product codes of 16 bytes.",
        )
        for row in found:
            cells = [number(row[name]) for name in ("recall", "share_of_gain", "share_of_time", "seconds")]
            table.rows.append([row["drift"], row["way"], *cells])
        yield table
    found = results.read("answers_bridge")
    if found:
        table = Table(
            "answers-bridge",
            "Queries of a new encoder in the coded index of an old one",
            ["old, new", "map", "NDCG@10: old", "bridged", "again", "share", "Recall@100: share", "neighbours: share"],
            "answers_bridge",
            "Shares of what embedding again keeps, with 95 % intervals over 2,000 queries.",
        )
        for row in found:
            means = [number(row["means"][name]["NDCG@10"]) for name in ("old encoder", "bridged", "again")]
            shares = ["{:.3f} ({:.3f} to {:.3f})".format(*values) for values in row["share"].values()]
            table.rows.append([f"{row['old']}, {row['new']}", row["kind"], *means, *shares])
        yield table

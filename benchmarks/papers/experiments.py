"""What no other benchmark measures: every experiment by its name."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.harness import limit_threads
from benchmarks.papers import (
    esl_cost,
    esl_towers,
    flows_both_layers,
    flows_convnet,
    flows_counts,
    flows_entries,
    flows_mlp,
    flows_rl,
    flows_sorting,
    flows_theorem,
    gcd_figure_2,
    gcd_figure_3,
    scq_whole,
    svrg_draws,
    svrg_figure_2,
    svrg_maps,
    svrg_retrieval,
    theory,
)
from benchmarks.papers.jobs import Experiment, measure

RUNS = {
    "gcd_figure_3": Experiment(gcd_figure_3.jobs, gcd_figure_3.FULL, gcd_figure_3.SMALL),
    "gcd_figure_2": Experiment(gcd_figure_2.jobs, gcd_figure_2.FULL, gcd_figure_2.SMALL),
    "scq_seconds": Experiment(scq_whole.seconds, scq_whole.FULL, scq_whole.SMALL),
    "scq_gist": Experiment(scq_whole.gist, scq_whole.FULL, scq_whole.SMALL),
    "scq_scale": Experiment(scq_whole.scale, scq_whole.FULL, scq_whole.SMALL),
    "scq_table_2": Experiment(scq_whole.table_2, scq_whole.FULL, scq_whole.SMALL),
    "value_and_gradient": Experiment(esl_cost.jobs, esl_cost.FULL, esl_cost.SMALL),
    "esl_towers": Experiment(esl_towers.jobs, esl_towers.FULL, esl_towers.SMALL),
    "eurodist": Experiment(svrg_maps.eurodist, svrg_maps.FULL, svrg_maps.SMALL),
    "music": Experiment(svrg_maps.music, svrg_maps.FULL, svrg_maps.SMALL),
    "svrg_draws": Experiment(svrg_draws.jobs, svrg_draws.FULL, svrg_draws.SMALL),
    "svrg_figure_2": Experiment(svrg_figure_2.jobs, svrg_figure_2.FULL, svrg_figure_2.SMALL),
    "svrg_retrieval": Experiment(svrg_retrieval.jobs, svrg_retrieval.FULL, svrg_retrieval.SMALL),
    "flows_counts": Experiment(flows_counts.jobs, None, None),
    "flows_theorem": Experiment(flows_theorem.jobs, flows_theorem.FULL, flows_theorem.SMALL),
    "entries": Experiment(flows_entries.jobs, flows_entries.FULL, flows_entries.SMALL),
    "flows_sorting": Experiment(flows_sorting.jobs, flows_sorting.FULL, flows_sorting.SMALL),
    "flows_convnet": Experiment(flows_convnet.jobs, flows_convnet.FULL, flows_convnet.SMALL),
    "flows_mlp": Experiment(flows_mlp.jobs, flows_mlp.FULL, flows_mlp.SMALL),
    "mlp": Experiment(flows_both_layers.jobs, flows_both_layers.FULL, flows_both_layers.SMALL),
    "theory": Experiment(theory.jobs, theory.FULL, theory.SMALL),
    "flows_rl": Experiment(flows_rl.jobs, flows_rl.FULL, flows_rl.SMALL),
}


def run_own(names: Iterable[str], data: Path, *, small: bool, again: bool, until: float) -> bool:
    """Run the named experiments, each into results/papers_NAME.json; whether all were done before `until`."""
    limit_threads(1)
    for name in names:
        print(f"== {name}", flush=True)
        experiment = RUNS[name]
        jobs = experiment.jobs(data, experiment.small if small else experiment.full)
        if not measure(name, jobs, data, again=again, until=until):
            return False
    return True

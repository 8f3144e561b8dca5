"""What config.json of each kind of folder holds: its keys and the types of their values, in one place."""

from pathlib import Path
from types import NoneType

from nearkin._types import Fields

_ESTIMATOR = {"class": (str,), "params": (dict,), "fitted": (dict,)}
SCHEMAS: dict[str, dict[str, tuple[type, ...]]] = {
    "index": {"metric": (str,), "n_features": (int,), "n_rows": (int,)},
    "product quantizer": _ESTIMATOR,
    "scalar quantizer": _ESTIMATOR,
    "axis quantizer": _ESTIMATOR,
    "residual quantizer": _ESTIMATOR,
    "product residual quantizer": _ESTIMATOR,
    "rotation": _ESTIMATOR,
    "hasher": _ESTIMATOR | {"bit_order": (str,)},
    "ordinal-embedding": {
        "n_objects": (int,),
        "n_components": (int,),
        "params": (dict,),
        "dimension_curve": (dict, NoneType),
        "objective": (float, int),
        "n_iter": (int,),
        "status": (str,),
    },
    "two-tower": {"parameters": (dict,), "fitted": (dict,), "encoders": (dict,), "history": (list,)},
    "compress checkpoint": {"job": (dict,), "block_rows": (int,)},
    "faiss shards": {"metric": (str,), "n_features": (int,), "bounds": (list,)},
}


def check_schema(file: Path, config: Fields) -> None:
    """ValueError for a key that is missing or of another type; folders of version 1 may lack keys."""
    for key, types in SCHEMAS.get(config["kind"], {}).items():
        if key not in config:
            if config["format_version"] > 1:
                raise ValueError(f"{file} has no {key!r}; the folder is damaged")
        elif type(config[key]) not in types:
            wanted = " or ".join("null" if kind is NoneType else kind.__name__ for kind in types)
            found = type(config[key]).__name__
            raise ValueError(f"{key!r} in {file} is of type {found}, not {wanted}; the folder is damaged")

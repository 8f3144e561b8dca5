"""Every key of every config.json, taken away or of another type, is one clear error at the door."""

import json
from pathlib import Path

import numpy as np
import pytest

from nearkin._storage.manifest import write_manifest
from nearkin.quantization import ScalarQuantizer
from tests.faults.folders import kinds


def test_a_key_missing_or_of_another_type_is_damage_or_harmless(tmp_path: Path) -> None:
    for kind in kinds():
        folder = tmp_path / kind.name
        kind.make(0).save(folder)
        file, refused = folder / "config.json", list[str]()
        whole = json.loads(file.read_text())
        for key in whole.keys() - {"kind", "format_version"}:
            value = whole[key]
            renamed = {f"{name}x": inner for name, inner in value.items()} if isinstance(value, dict) else "ITQx"
            without = {name: inner for name, inner in whole.items() if name != key}
            for config in (
                without,
                *({**whole, key: other} for other in ([] if not isinstance(value, list) else {}, True, renamed)),
            ):
                file.write_text(json.dumps(config))
                write_manifest(folder, whole["kind"])
                try:
                    kind.answer(folder)
                except ValueError as error:
                    refused.append(str(error))
        assert refused, kind.name
        assert all(str(folder) in text for text in refused), refused


def test_a_width_beyond_the_arrays_is_refused(tmp_path: Path) -> None:
    """FAISS read beyond the ranges: the process ended (SIGSEGV)."""
    ScalarQuantizer(8).fit(np.eye(4, dtype=np.float32)).save(tmp_path / "it")
    file = tmp_path / "it" / "config.json"
    config = json.loads(file.read_text())
    config["fitted"]["n_features_in_"] = 10**7
    file.write_text(json.dumps(config))
    write_manifest(tmp_path / "it", "scalar quantizer")
    with pytest.raises(ValueError, match="scale_ has shape"):
        ScalarQuantizer.load(tmp_path / "it")

"""Saved folders to a repository of the Hugging Face Hub, with the package `huggingface_hub` (extra `hub`)."""

from pathlib import Path

from nearkin._fields import StrPath
from nearkin._storage import one_version, read_manifest
from nearkin._storage.manifest import MANIFEST
from nearkin.data.files import extra


def push_to_hub(
    folder: StrPath, repo_id: str, *, private: bool = True, revision: str | None = None, endpoint: str | None = None
) -> str:
    """Upload a saved folder (an index, an embedding, a quantizer) whole, as one commit; returns its URL.

    The repository is made if it is missing, and `private` then. Files that nearkin did not write stay here. The token
    is that of `hf auth login` or HF_TOKEN; `endpoint` is another server. `huggingface_hub.snapshot_download(repo_id)`
    gives the folder for `nk.Index.load`. ValueError, and no upload, for a folder that is damaged or not nearkin's.
    """
    api = extra("huggingface_hub", "hub").HfApi(endpoint=endpoint)
    files = one_version(folder, _verified)
    api.create_repo(repo_id, private=private, exist_ok=True)
    made = api.upload_folder(
        repo_id=repo_id,
        folder_path=folder,
        revision=revision,
        allow_patterns=files,
        commit_message=f"Upload {Path(folder).name} by nearkin",
    )
    return str(made.commit_url)


def _verified(folder: Path) -> list[str]:
    """The files of a saved folder, each compared with its checksums."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise ValueError(f"{folder} has no {MANIFEST}, so this nearkin did not save it; load it, and save it again")
    for name in manifest.files:
        manifest.verify(name)
    return [MANIFEST, *manifest.files]

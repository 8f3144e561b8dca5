"""How do I search nearkin's codes from LangChain? A `LangChainStore` (pip install 'nearkin[langchain]')."""

import tempfile
from pathlib import Path

from langchain_core.embeddings import Embeddings

import nearkin as nk


class Letters(Embeddings):
    """A stand-in for a real encoder: how often each letter occurs."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def main() -> None:
    texts = ["a small red apple", "the quick brown fox", "fix the box", "pears and apples"]
    kinds = [{"fruit": True}, {"fruit": False}, {"fruit": False}, {"fruit": True}]
    store = nk.integrations.LangChainStore.from_texts(texts, Letters(), kinds)  # quantizer=16 for codes of 16 bytes
    print("nearest to 'apple':", [found.page_content for found in store.similarity_search("apple", k=2)])
    fruit = store.similarity_search("fox", k=3, filter={"fruit": True})
    print("nearest fruit to 'fox':", [found.page_content for found in fruit])
    with tempfile.TemporaryDirectory() as folder:
        store.save(Path(folder) / "store")
        again = nk.integrations.LangChainStore.load(Path(folder) / "store", Letters())
        print("after loading:", again.similarity_search("box", k=1)[0].page_content)


if __name__ == "__main__":
    main()

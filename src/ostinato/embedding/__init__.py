"""From texts to vectors that are near each other if the texts are: embedders behind one small protocol."""

from ostinato.embedding.endpoint import OpenAIEmbedder
from ostinato.embedding.hashing import HashingEmbedder
from ostinato.embedding.offline import WordllamaEmbedder
from ostinato.embedding.protocol import Embedder

__all__ = ["Embedder", "HashingEmbedder", "OpenAIEmbedder", "WordllamaEmbedder"]

"""From texts to vectors that are near each other if the texts are: embedders behind one small protocol."""

from ostinato.embedding.hashing import HashingEmbedder
from ostinato.embedding.openai import OpenAIEmbedder
from ostinato.embedding.protocol import Embedder
from ostinato.embedding.wordllama import WordllamaEmbedder

__all__ = ["Embedder", "HashingEmbedder", "OpenAIEmbedder", "WordllamaEmbedder"]

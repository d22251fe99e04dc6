"""Agents that Ostinato runs itself: questions to language models. They know nothing of jobs, tasks or databases."""

from ostinato.agents.cost import Meter, Price, Usage
from ostinato.agents.limiter import Limiter
from ostinato.agents.llm import Llm, LlmAnswer, LlmSettings
from ostinato.agents.schema import Violation

__all__ = ["Limiter", "Llm", "LlmAnswer", "LlmSettings", "Meter", "Price", "Usage", "Violation"]

"""JSONata expressions, and templates made of them. They are evaluated in bounded processes of their own."""

from ostinato.expressions.language import Expression, compile
from ostinato.expressions.templates import check, render

__all__ = ["Expression", "check", "compile", "render"]

"""Calls to addresses that users give: webhooks, and agents over HTTP. Guarded, bounded and signed."""

from ostinato.outgoing.caller import Answer, Caller, CallOptions, retry_after
from ostinato.outgoing.signing import sign, verify

__all__ = ["Answer", "CallOptions", "Caller", "retry_after", "sign", "verify"]

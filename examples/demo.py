"""What `make run` serves: the store report, and functions that try again, give up and wait for an answer.

`demo.json` has a job for each. Its keys say that starting again submits nothing twice.
"""

from __future__ import annotations

from store_report.main import app

from ostinato import Context, Retry, TerminalError

__all__ = ["app"]


@app.function("import-prices", retry=Retry(max_attempts=5, base_delay=0.5, multiplier=2))
async def import_prices(ctx: Context, shop: str) -> dict[str, object]:
    if ctx.attempt < 3:
        raise ConnectionError(f"{shop} does not answer")  # twice; then it does
    ctx.log.info("prices arrived at last")
    return {"shop": shop, "prices": 120}


@app.function("charge-card")
async def charge_card(ctx: Context, order: str) -> None:
    raise TerminalError(f"the card for order {order} has expired")  # trying again would not help


@app.function("ask-for-approval")
async def ask_for_approval(ctx: Context, order: str) -> dict[str, object]:
    answer = await ctx.wait_for("approval")  # for as long as it takes, holding no slot and no memory
    return {"order": order, "approved": answer}

"""The live tree of a job on a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ostinato import views
from ostinato.cli import output, watching
from ostinato.core import states

MARGIN = 6
"""Lines that are not tasks: the job, the bar, the summary of the others, and the prompt below."""
BAR_WIDTH = 40
OPEN = (states.BLOCKED, *sorted(states.TASK_ACTIVE))


async def show(follower: watching.Follower) -> views.JobView:
    """Draw until the job ends, and leave the last picture standing."""
    console = output.console()
    room = max(5, console.height - MARGIN)
    end = await follower.job.info()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        async for seen in follower.snapshots(room):
            live.update(draw(seen, console.width), refresh=True)
            end = seen.job
    return end


def draw(seen: watching.Snapshot, width: int) -> Group:
    tree = Tree(_title(seen.job), guide_style="bright_black")
    for task in seen.tasks:
        tree.add(_task(task, seen))
    others = seen.job.total_tasks - len(seen.tasks)
    if others > 0:
        tree.add(Text(f"… {others:,} more tasks", style="bright_black"))
    return Group(tree, _progress(seen, width))


def _title(job: views.JobView) -> Text:
    title = Text(no_wrap=True, overflow="ellipsis")
    title.append(output.plain(job.name), style="bold")
    title.append(f"  {job.job_id}  ")
    title.append(job.state, style=output.COLOURS.get(job.state, ""))
    if job.failure_detected_at is not None and job.state == states.RUNNING:
        title.append("  (a task has failed)", style="red")
    return title


def _task(task: views.TaskView, seen: watching.Snapshot) -> Text:
    """One task: its id, how it stands, and what there is to say about that."""
    width = min(30, max((len(other.task_id) for other in seen.tasks), default=0))
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f"{task.task_id:<{width}}  ")
    line.append(f"{task.state:<10}", style=output.COLOURS.get(task.state, ""))
    about = [output.took(task.started_at, task.finished_at, seen.now) if task.state != states.BLOCKED else ""]
    about.append(f"attempt {task.attempt}" if task.attempt > 1 else "")
    about.append(f"waits for {seen.waits[task.task_id]}" if task.task_id in seen.waits else "")
    if task.state == states.BLOCKED and task.open_dependencies:
        about.append(f"needs {task.open_dependencies:,} more")
    about.append(output.one_line(output.reason(task.error)))
    line.append("  " + "  ".join(part for part in about if part), style="bright_black")
    return line


def _progress(seen: watching.Snapshot, width: int) -> Table:
    """A bar and figures. Where there is little room the bar gets shorter, and of the figures only the last are cut."""
    job = seen.job
    done = job.total_tasks - sum(job.task_statuses.get(state, 0) for state in OPEN)
    failed = job.failure_detected_at is not None or job.state not in (states.RUNNING, states.COMPLETED)
    bar = ProgressBar(
        total=max(job.total_tasks, 1),
        completed=done,
        width=min(BAR_WIDTH, width // 3),
        complete_style="red" if failed else "cyan",
        finished_style="red" if failed else "green",
    )
    row = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for _ in range(3):
        row.add_column(no_wrap=True)
    row.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    took = output.took(job.created_at, job.finished_at, seen.now)
    row.add_row(bar, f"{done:,}/{job.total_tasks:,}", took, output.counts(job.task_statuses))
    return row

"""Playbooks in use: agents, graphs and playbooks saved in versions, planned, and started for data or a question."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
import uuid_utils

from ostinato import definition_files, errors, logs, threads, tracing
from ostinato.agents import schema, wire
from ostinato.core import codec, commands, documents, graph
from ostinato.playbooks import definition, job, plan
from ostinato.reactions import definitions

Type = Literal["ingestion", "query"]


class Started(msgspec.Struct, frozen=True, rename="camel"):
    """`created` is False when the idempotency key found the job of before."""

    job_id: str
    playbook: str
    version: int
    created: bool


class Configuration(msgspec.Struct, frozen=True):
    """Definitions that belong together, and which versions of them."""

    playbook: definition.Playbook
    edges: definition.Graph | None
    agents: dict[str, definition.Agent]
    versions: job.Versions

    @property
    def plan(self) -> plan.Plan:
        return plan.plan(self.playbook, self.edges, self.agents)


class Playbooks(definitions.Kept[definition.Playbook]):
    """The playbooks of a tenant: `app.playbooks`."""

    def __init__(self, app: definitions.Application) -> None:
        self._app = app
        self.agents = definitions.Shelf(app, "agent", _read_agent, definition.expressions)
        self.graphs = definitions.Shelf(app, "graph", definition.read_graph, definition.expressions)
        self.shelf = definitions.Shelf(app, "playbook", definition.read_playbook, definition.expressions)

    async def define_agent(self, document: Any, *, actor: str | None = None, expected: int | None = None) -> int:
        return (await self.agents.save(document, actor=actor, expected=expected)).version

    async def define_graph(self, document: Any, *, actor: str | None = None, expected: int | None = None) -> int:
        return (await self.graphs.save(document, actor=actor, expected=expected)).version

    async def apply(self, folder: str | os.PathLike[str], *, actor: str | None = None) -> None:
        """Define what is in the folders `agents`, `graphs` and `playbooks` of a folder, as `ostinato playbooks apply`.

        Everything is checked before anything is saved; what is unchanged gets no new version."""
        if not isinstance(folder, (str, os.PathLike)) or "\0" in str(folder):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.InvalidInput(f"folder must be a path, not {documents.short(folder)}", field="folder")
        found = await threads.run(lambda: list(self._in(os.fspath(folder))))
        for shelf, one in found:
            await shelf.save(one.document, actor=actor)

    def _in(self, folder: str) -> Iterator[tuple[definitions.Shelf[Any], definition_files.Found]]:
        shelves: dict[str, definitions.Shelf[Any]] = {
            "agents": self.agents,
            "graphs": self.graphs,
            "playbooks": self.shelf,
        }
        there = {name: shelf for name, shelf in shelves.items() if os.path.isdir(os.path.join(folder, name))}
        if not there:
            raise errors.InvalidInput(
                f"{documents.short(folder)} has no folder agents, graphs or playbooks: name one that has"
            )
        for name, shelf in there.items():
            for one in definition_files.in_folder(os.path.join(folder, name)):
                try:
                    shelf.check(one.document)
                except errors.InvalidInput as error:
                    raise one.refused(error) from None
                yield shelf, one

    async def plan(self, name: str) -> plan.Plan:
        """Levels, critical path and warnings, as everything is defined now. Nothing runs."""
        return (await self.configuration(name)).plan

    async def start(
        self,
        type: Type,
        domain_id: str,
        data: Any,
        *,
        playbook: str | None = None,
        job_id: str | None = None,
        idempotency_key: str | None = None,
        correlation_id: str | None = None,
        actor: str | None = None,
    ) -> Started:
        """Start the playbook of a domain. Durable when this returns; what comes of it is in the job."""
        documents.check_text(domain_id, "domain_id", 128)
        await self._app.note(actor, "playbooks.start", domain_id, type=type, playbook=playbook)
        for field, given_id in (("correlationId", correlation_id), ("job_id", job_id)):
            if given_id is not None:
                graph.check_id(given_id, field)
        if idempotency_key is not None:
            graph.check_key(idempotency_key)
        name, version, chosen = await self._playbook_of(type, domain_id, playbook)
        running = self._app.engine
        text = codec.encode(data, "data", running.max_payload_bytes).decode()
        given = codec.encode_own({"playbook": name, "version": version, "raw_data": text})
        tasks = job.first_tasks(chosen.stages)
        tasks[0].input = {"raw_data": text}  # by which the same request is known again
        spec = graph.JobSpec(
            tasks,
            name=f"{job.JOB}{name}",
            job_id=job_id,
            correlation_id=correlation_id,
            idempotency_key=idempotency_key,
            tags={"playbook": name, "domain": domain_id, "type": type},
            deadline=chosen.deadline,
            max_concurrency=chosen.max_concurrency,
        )
        command = commands.Submit(
            job_id or str(uuid_utils.uuid7()), spec, [given] * len(tasks), actor, correlation_id=logs.correlation_id()
        )
        with tracing.submission(running.tracer, running.tenant, command):
            answer: commands.Submitted = await running.execute(command)
        return Started(answer.job_id, name, version, answer.created)

    async def configuration(self, name: str, version: int | None = None) -> Configuration:
        """A playbook, of now or of one version, with its graph and agents as they are now."""
        playbook, of = await self.shelf.get(name, version)
        agents: dict[str, int | None] = dict.fromkeys(playbook.agents)
        if playbook.synthesis.agent is not None:
            agents[playbook.synthesis.agent] = None
        return await self._configured(playbook, of, agents, None)

    async def pinned(self, name: str, versions: job.Versions) -> Configuration:
        """A playbook with its graph and agents as a job began with them."""
        playbook, of = await self.shelf.get(name, versions.playbook)
        return await self._configured(playbook, of, dict(versions.agents), versions.graph)

    async def _configured(
        self, playbook: definition.Playbook, of: int, wanted: Mapping[str, int | None], graph_version: int | None
    ) -> Configuration:
        edges, edges_version = None, None
        if playbook.graph is not None:
            edges, edges_version = await self.graphs.get(playbook.graph, graph_version)
        agents: dict[str, definition.Agent] = {}
        versions: dict[str, int] = {}
        for agent, version in wanted.items():
            try:
                agents[agent], versions[agent] = await self.agents.get(agent, version)
            except errors.DefinitionNotFound:  # the plan names it, and the nearest of all others
                agents = {found.value.name: found.value for found in await self.agents.everything()} | agents
        return Configuration(playbook, edges, agents, job.Versions(of, versions, edges_version))

    async def _playbook_of(self, type: Type, domain_id: str, name: str | None) -> tuple[str, int, definition.Playbook]:
        if name is not None:
            try:
                playbook, version = await self.shelf.get(name)
            except errors.DefinitionNotFound as error:
                raise errors.DefinitionNotFound(error.message, **error.details, field="playbook") from None
            if (playbook.type, playbook.domain) != (type, domain_id):
                raise errors.InvalidInput(
                    f"playbook {name!r} is for {playbook.type} in {playbook.domain!r}", field="playbook"
                )
            return name, version, playbook
        found = [entry for entry in await self.shelf.everything() if _is_for(entry.value, type, domain_id)]
        if not found:
            raise errors.DefinitionNotFound(
                f"there is no playbook for {type} in domain {domain_id!r}: define one", field="domain_id"
            )
        if len(found) > 1:
            names = ", ".join(repr(entry.value.name) for entry in found)
            raise errors.InvalidInput(
                f"{len(found)} playbooks are for {type} in {domain_id!r} ({names}): say which one", field="playbook"
            )
        return found[0].value.name, found[0].version, found[0].value


def _is_for(playbook: definition.Playbook, type: Type, domain_id: str) -> bool:
    return playbook.type == type and playbook.domain == domain_id


def _read_agent(document: Any) -> definition.Agent:
    agent = definition.read_agent(document)
    schema.check(agent.output_schema, "outputSchema")
    if agent.llm is not None:
        wire.check_parameters(agent.llm.parameters, "llm.parameters")
    return agent

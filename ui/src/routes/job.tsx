import { Group, Tabs, Text } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo } from 'react';
import { together, useAsk } from '../api/live';
import { Attention } from '../components/Attention';
import { Answer, Loading, Nothing, Trouble } from '../components/Answer';
import { Elapsed, Id, Moment, Page, Progress, State } from '../components/bits';
import { Compare } from '../components/Compare';
import { EventList } from '../components/EventList';
import { Tags } from '../components/ExecutionTable';
import { JobActions } from '../components/JobActions';
import { TaskPanel } from '../components/TaskPanel';
import { TaskTable } from '../components/TaskTable';
import { Timeline } from '../components/Timeline';
import { TimeSlider } from '../components/TimeSlider';
import { asOf, countStates, Run } from '../model/run';
import type { JobSearch, JobTab } from '../model/search';
import { counted } from '../model/words';
import { JOB, type Job } from '../services/jobs';
import { JOB_PREFIX } from '../services/pipelines';
import { useHistory, useRun, useTasks } from '../services/run';

const JobGraph = lazy(() => import('../components/JobGraph'));
const route = getRouteApi('/jobs/$jobId');

export function JobPage() {
  const { jobId } = route.useParams();
  return <OneJob key={jobId} jobId={jobId} />;
}

function OneJob({ jobId }: { jobId: string }) {
  const live = useRun(jobId);
  const asked = useAsk(JOB, { jobId }, { tick: live.tick });
  const job = asked.data?.job;
  useEffect(() => {
    if (job) document.title = `${job.name}: ${job.state} · Ostinato`;
  }, [job]);
  return (
    <Answer of={together(asked, live)}>
      {(data) =>
        data.job === null ? (
          <Nothing title="There is no such job here">
            It may be another tenant’s, or it was removed with what is old.
          </Nothing>
        ) : (
          <Shown job={data.job} live={live} again={asked.again} />
        )
      }
    </Answer>
  );
}

function Shown({ job, live, again }: { job: Job; live: ReturnType<typeof useRun>; again: () => void }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const tasks = useTasks(live.run);
  const tab: JobTab = search.tab ?? 'graph';
  const stepping = tab === 'graph' || (tab === 'tasks' && search.at !== undefined);
  const history = useHistory(job.jobId, live.tick, !stepping && (tab === 'compare' || tab === 'tasks'));
  const at = stepping && history.complete ? search.at : undefined;
  const past = useMemo(
    () => (at === undefined ? null : asOf(tasks, history.events, at)),
    [at, tasks, history.events],
  );
  const then = at === undefined ? null : (history.events.findLast(({ seq }) => seq <= at)?.at ?? null);
  const run = useMemo(() => (past === null ? live.run : new Run(past, then)), [past, then, live.run]);
  const shown = past ?? tasks;
  const cut = live.first !== null;
  const told = job.taskStatuses as Record<string, number>;
  /** The server counts all of them; it is only asked where not all are known here. */
  const counts = past === null && (cut || !live.ready) ? told : countStates(shown);
  function go(change: Partial<JobSearch>, replace = false) {
    void navigate({ search: (before) => ({ ...before, ...change }), replace, resetScroll: false });
  }
  const choose = (task: string | undefined) => go({ task });
  return (
    <Page
      title={
        <Group gap="sm" wrap="nowrap">
          <span className="clip">{job.name}</span>
          <State state={job.state} />
        </Group>
      }
      about={<About job={job} />}
      actions={<JobActions job={job} again={again} />}
    >
      <Progress counts={counts} />
      {cut && <Part first={live.first!} more={tasks.length - live.first!} total={job.totalTasks} />}
      {past === null && <Attention jobId={job.jobId} tasks={tasks} counts={counts} onChoose={choose} />}
      {live.error && <Trouble error={live.error} again={live.again} />}
      {history.error && <Trouble error={history.error} again={history.again} />}
      <div className="job-body">
        <div className="job-main">
          <Tabs value={tab} onChange={(next) => go({ tab: next as JobTab })} keepMounted={false}>
            <Tabs.List mb="xs">
              <Tabs.Tab value="graph">Graph</Tabs.Tab>
              <Tabs.Tab value="timeline">Timeline</Tabs.Tab>
              <Tabs.Tab value="tasks">Tasks</Tabs.Tab>
              <Tabs.Tab value="events">Events</Tabs.Tab>
              <Tabs.Tab value="compare">Compare</Tabs.Tab>
            </Tabs.List>
            <div className="fills">
              <Tabs.Panel value="graph" h="100%">
                <Suspense fallback={<Loading />}>
                  {live.ready ? (
                    <JobGraph run={run} tasks={shown} chosen={search.task} onChoose={choose} />
                  ) : (
                    !live.error && <Loading />
                  )}
                </Suspense>
              </Tabs.Panel>
              <Tabs.Panel value="timeline" h="100%">
                <Timeline
                  events={history.events}
                  complete={history.complete}
                  cut={history.cut}
                  tasks={tasks}
                  chosen={search.task}
                  onChoose={choose}
                />
              </Tabs.Panel>
              <Tabs.Panel value="tasks" h="100%">
                {live.ready ? (
                  <TaskTable
                    tasks={shown}
                    counts={counts}
                    total={past === null ? job.totalTasks : shown.length}
                    asOf={then}
                    chosen={search.task}
                    onChoose={choose}
                  />
                ) : (
                  !live.error && <Loading />
                )}
              </Tabs.Panel>
              <Tabs.Panel value="events" h="100%">
                <EventList events={history.events} complete={history.complete} cut={history.cut} />
              </Tabs.Panel>
              <Tabs.Panel value="compare" h="100%">
                {live.ready ? (
                  <Compare job={job} tasks={tasks} other={search.other} onOther={(other) => go({ other })} />
                ) : (
                  !live.error && <Loading />
                )}
              </Tabs.Panel>
            </div>
          </Tabs>
          {stepping && history.complete && history.events.length > 1 && (
            <TimeSlider events={history.events} at={search.at} onChange={(at) => go({ at }, true)} />
          )}
        </div>
        {search.task !== undefined && (
          <TaskPanel
            key={search.task}
            jobId={job.jobId}
            taskId={search.task}
            tasks={tasks}
            tick={live.tick}
            onClose={() => choose(undefined)}
            onChoose={choose}
          />
        )}
      </div>
    </Page>
  );
}

/** That not all of its tasks are here, and which are. */
function Part({ first, more, total }: { first: number; more: number; total: number }) {
  const others = more > 0 ? `, and ${more.toLocaleString()} of the others that failed, run or wait` : '';
  return (
    <Text fz="sm" c="dimmed" role="note" mt={6}>
      {`This page shows the first ${first.toLocaleString()} of ${total.toLocaleString()} tasks${others}. The bar counts all of them.`}
    </Text>
  );
}

function About({ job }: { job: Job }) {
  const item = job.name.startsWith(JOB_PREFIX) ? (job.tags as Record<string, string>).item : undefined;
  return (
    <Group gap="md" wrap="wrap">
      <Id id={job.jobId} name="id of the job" />
      {item !== undefined && (
        <Link className="link" to="/items/$itemId" params={{ itemId: item }}>
          item {item}
        </Link>
      )}
      <span>
        began <Moment at={job.createdAt} />
      </span>
      <span>
        {job.finishedAt === null ? 'running for ' : 'took '}
        <Elapsed from={job.createdAt} to={job.finishedAt} />
      </span>
      <span>{counted(job.totalTasks, 'task')}</span>
      {job.deadlineAt !== null && job.finishedAt === null && (
        <span>
          deadline <Moment at={job.deadlineAt} />
        </span>
      )}
      {job.correlationId !== job.jobId && (
        <Text span inherit>
          correlation <span className="mono">{job.correlationId}</span>
        </Text>
      )}
      <Tags tags={job.tags as Record<string, string>} />
    </Group>
  );
}

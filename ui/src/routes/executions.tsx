import { Button, Group } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';
import { JOB_EVENTS, useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Page } from '../components/bits';
import { BulkActions } from '../components/BulkActions';
import { useViewer } from '../components/Doorway';
import { ExecutionFilters } from '../components/ExecutionFilters';
import { ExecutionTable } from '../components/ExecutionTable';
import { command } from '../model/commands';
import { executionFilter, refined, type ExecutionSearch } from '../model/search';
import { EXECUTIONS } from '../services/executions';
import { may } from '../services/viewer';

const route = getRouteApi('/executions');
const WATCHED = { types: JOB_EVENTS };
const PAGE = 50;
const NOBODY: ReadonlySet<string> = new Set();

export function Executions() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const viewer = useViewer();
  const tick = useTick(WATCHED);
  const [chosen, setChosen] = useState(NOBODY);
  const asked = useAsk(
    EXECUTIONS,
    { filter: executionFilter(search), order: search.order ?? 'newest', first: PAGE, after: search.after },
    { tick },
  );
  function go(next: ExecutionSearch) {
    setChosen(NOBODY);
    void navigate({ search: next });
  }
  function choose(jobIds: readonly string[], on: boolean) {
    const next = new Set(chosen);
    for (const jobId of jobIds) {
      if (on) next.add(jobId);
      else next.delete(jobId);
    }
    setChosen(next);
  }
  return (
    <Page
      title="Executions"
      about="Everything that runs or ran, here and elsewhere"
      actions={<CopyAs path={restPath(search)} cli={cliLine(search)} />}
    >
      <ExecutionFilters search={search} onChange={go} />
      {chosen.size > 0 && may(viewer, 'jobs:write') && (
        <Group mb="sm">
          <BulkActions
            jobIds={[...chosen]}
            onDone={() => {
              setChosen(NOBODY);
              asked.again();
            }}
          />
        </Group>
      )}
      <Answer of={asked} lines={8}>
        {({ executions }) => (
          <>
            {executions.nodes.length === 0 && !executions.pageInfo.hasNextPage ? (
              <Nothing title="Nothing matches">
                {Object.keys(search).length
                  ? 'Widen the filters, or clear them.'
                  : 'Submit a job, and it appears here.'}
              </Nothing>
            ) : (
              <ExecutionTable
                executions={executions.nodes}
                selection={may(viewer, 'jobs:write') ? { chosen, choose } : undefined}
                onTag={(tag) => go(refined(search, { tag }))}
              />
            )}
            <Group justify="flex-end" mt="sm">
              {search.after && (
                <Button variant="default" onClick={() => go(refined(search, {}))}>
                  First page
                </Button>
              )}
              <Button
                variant="default"
                disabled={!executions.pageInfo.hasNextPage}
                onClick={() => go(refined(search, { after: executions.pageInfo.endCursor ?? undefined }))}
              >
                Next page
              </Button>
            </Group>
          </>
        )}
      </Answer>
    </Page>
  );
}

function restPath(search: ExecutionSearch): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(executionFilter(search))) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) query.append(name, one);
  }
  if (search.order) query.append('order', search.order);
  return `/v1/executions${query.size ? `?${query}` : ''}`;
}

function cliLine(search: ExecutionSearch): string {
  const words: string[] = [];
  const say = (option: string, value: string | undefined) => value && words.push(option, value);
  say('--agent', search.agent);
  for (const status of search.status ?? []) say('--status', status);
  say('--tag', search.tag);
  say('--correlation-id', search.correlation);
  say('--since', search.from);
  say('--until', search.until);
  if (search.order) words.push('--oldest');
  return command('ostinato executions ls', ...words);
}

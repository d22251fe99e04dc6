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
import { command, option, withQuery } from '../model/commands';
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
      actions={
        <CopyAs
          path={withQuery('/v1/executions', {
            ...executionFilter(search),
            includeEngine: search.engine && 'true',
            order: search.order,
          })}
          cli={cliLine(search)}
        />
      }
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
            {executions.nodes.length === 0 ? (
              <Nothing title={executions.pageInfo.hasNextPage ? 'Nothing so far' : 'Nothing matches'}>
                {nothingSays(search, executions.pageInfo.hasNextPage)}
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

/** Where filters seldom meet, a page may be empty although the list goes on. */
function nothingSays(search: ExecutionSearch, goesOn: boolean): string {
  if (goesOn) return 'These filters seldom meet: the next page looks further.';
  const filtered = Object.values(executionFilter(search)).some((value) => value !== undefined);
  return filtered ? 'Widen the filters, or clear them.' : 'Submit a job, and it appears here.';
}

function cliLine(search: ExecutionSearch): string {
  return command(
    'ostinato executions ls',
    ...option('--agent', search.agent),
    ...(search.status ?? []).flatMap((status) => option('--status', status)),
    ...option('--tag', search.tag),
    ...option('--correlation-id', search.correlation),
    ...option('--since', search.from),
    ...option('--until', search.until),
    search.order && '--oldest',
    search.engine && '--with-engine',
  );
}

import { Button, Grid, Group, Paper, SegmentedControl, SimpleGrid, Stack, Tabs, Title } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { together, useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page, useNow } from '../components/bits';
import { Board } from '../components/Board';
import { BulkItems } from '../components/BulkItems';
import { DefinitionCard } from '../components/DefinitionCard';
import { useViewer } from '../components/Doorway';
import { HealthPanel } from '../components/HealthPanel';
import { ItemTable } from '../components/ItemTable';
import { LegalMoves } from '../components/LegalMoves';
import { PipelineActions } from '../components/PipelineActions';
import { RetryPolicies } from '../components/RetryPolicies';
import { Tile } from '../components/Tile';
import { command } from '../model/commands';
import {
  doneInDay,
  itemCommand,
  itemFilter,
  itemQuery,
  tones,
  type PipelineDocument,
} from '../model/pipeline';
import type { ItemGroup, PipelineSearch, PipelineTab } from '../model/search';
import { KINDS, type Definition } from '../services/definitions';
import { HEALTH, ITEMS, pipelineEvents, type Health } from '../services/pipelines';
import { may } from '../services/viewer';

const route = getRouteApi('/pipelines/$name');
const MINUTE = 60_000;
const PAGE = 50;

export function PipelinePage() {
  const { name } = route.useParams();
  return <OnePipeline key={name} name={name} />;
}

function OnePipeline({ name }: { name: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const viewer = useViewer();
  const tick = useTick(pipelineEvents(name)) + Math.floor(useNow() / MINUTE);
  const found = useAsk(KINDS.pipeline.one, { name });
  const health = useAsk(HEALTH, { name }, { tick });
  const definition = found.data?.found;
  const document = definition?.definition as PipelineDocument | undefined;
  const colours = useMemo(() => (document ? tones(document) : new Map<string, string>()), [document]);
  const tab: PipelineTab = search.tab ?? 'board';
  function go(change: Partial<PipelineSearch>) {
    void navigate({ search: (before) => ({ ...before, after: undefined, ...change }) });
  }
  return (
    <Page
      title={name}
      about={
        (document as { description?: string } | undefined)?.description ??
        'Where its items are, and how they do'
      }
      actions={
        <>
          <CopyAs {...copied(name, tab, search)} />
          {definition && may(viewer, 'jobs:write') && (
            <PipelineActions pipeline={name} again={health.again} />
          )}
        </>
      }
    >
      <Answer of={together(found, health)}>
        {() =>
          !definition || !document ? (
            <Nothing title="There is no such pipeline" />
          ) : (
            <Stack>
              <Answer of={health} lines={3}>
                {({ pipelineHealth }) => pipelineHealth && <Tiles name={name} health={pipelineHealth} />}
              </Answer>
              <Tabs value={tab} onChange={(next) => go({ tab: next as PipelineTab })} keepMounted={false}>
                <Tabs.List mb="sm">
                  <Tabs.Tab value="board">Board</Tabs.Tab>
                  <Tabs.Tab value="health">Health</Tabs.Tab>
                  <Tabs.Tab value="moves">Moves</Tabs.Tab>
                  <Tabs.Tab value="definition">Definition and retries</Tabs.Tab>
                </Tabs.List>
                <Tabs.Panel value="board">
                  <Answer of={health}>
                    {({ pipelineHealth }) =>
                      pipelineHealth && (
                        <Stack>
                          <Board
                            pipeline={name}
                            statuses={pipelineHealth.statuses}
                            tones={colours}
                            chosen={search.status}
                          />
                          <Items
                            definition={definition}
                            health={pipelineHealth}
                            colours={colours}
                            tick={tick}
                            again={health.again}
                          />
                        </Stack>
                      )
                    }
                  </Answer>
                </Tabs.Panel>
                <Tabs.Panel value="health">
                  <Answer of={health}>
                    {({ pipelineHealth }) =>
                      pipelineHealth && <HealthPanel health={pipelineHealth} tones={colours} />
                    }
                  </Answer>
                </Tabs.Panel>
                <Tabs.Panel value="moves">
                  <LegalMoves pipeline={name} version={definition.version} tones={colours} />
                </Tabs.Panel>
                <Tabs.Panel value="definition">
                  <Grid>
                    <Grid.Col span={{ base: 12, lg: 6 }}>
                      <RetryPolicies pipeline={name} tick={definition.version} />
                    </Grid.Col>
                    <Grid.Col span={{ base: 12, lg: 6 }}>
                      <DefinitionCard kind="pipeline" name={name} onChange={found.again} />
                    </Grid.Col>
                  </Grid>
                </Tabs.Panel>
              </Tabs>
            </Stack>
          )
        }
      </Answer>
    </Page>
  );
}

function Tiles({ name, health }: { name: string; health: Health }) {
  const stuck = health.stuckCount;
  const lastHour = health.throughput.at(-1)?.items ?? 0;
  const to = { to: '/pipelines/$name', params: { name }, className: 'tile' } as const;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing="sm">
      <Link {...to} search={{}}>
        <Tile title="Not over" value={health.items.toLocaleString()} about="items on their way" />
      </Link>
      <Link to="/approvals" className="tile">
        <Tile
          title="Waiting for review"
          value={health.reviewsWaiting.toLocaleString()}
          about={
            health.oldestReviewAt ? (
              <>
                the oldest since <Moment at={health.oldestReviewAt} />
              </>
            ) : (
              'nobody is asked'
            )
          }
        />
      </Link>
      <Link {...to} search={{ show: 'retrying' }}>
        <Tile
          title="To be retried"
          value={health.retrying.toLocaleString()}
          about={
            health.nextRetryAt ? (
              <>
                next <Moment at={health.nextRetryAt} />
              </>
            ) : (
              'nothing'
            )
          }
        />
      </Link>
      <Link {...to} search={{ show: 'stuck' }}>
        <Tile
          title="Stuck"
          value={stuck.toLocaleString()}
          alarm={stuck > 0}
          about={<div className="clip">{health.stuck[0]?.why ?? 'nothing for an hour'}</div>}
        />
      </Link>
      <Link {...to} search={{ tab: 'health' }}>
        <Tile
          title="Over in 24 hours"
          value={doneInDay(health.throughput).toLocaleString()}
          about={`${lastHour.toLocaleString()} in this hour`}
        />
      </Link>
    </SimpleGrid>
  );
}

const GROUPS = [
  { value: '', label: 'All' },
  { value: 'stuck', label: 'Stuck' },
  { value: 'retrying', label: 'To be retried' },
  { value: 'held', label: 'Held back' },
];

function Items({
  definition,
  health,
  colours,
  tick,
  again,
}: {
  definition: Definition;
  health: Health;
  colours: ReadonlyMap<string, string>;
  tick: number;
  again: () => void;
}) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const viewer = useViewer();
  const { name } = definition;
  const filter = itemFilter(search);
  const asked = useAsk(ITEMS, { pipeline: name, filter, first: PAGE, after: search.after }, { tick });
  const go = (next: PipelineSearch) => void navigate({ search: next });
  const about = GROUPS.find((group) => group.value === search.show)?.label.toLowerCase() ?? 'all';
  return (
    <Paper component="section" aria-label="Items">
      <Group justify="space-between" mb="xs">
        <Group gap="md">
          <Title order={2}>{search.status ? `Items that are ${search.status}` : 'Items'}</Title>
          <SegmentedControl
            size="xs"
            aria-label="Which items"
            data={GROUPS}
            value={search.status ? 'status' : (search.show ?? '')}
            onChange={(show) => go({ show: (show || undefined) as ItemGroup | undefined })}
          />
        </Group>
        {may(viewer, 'jobs:write') && (
          <BulkItems
            key={JSON.stringify(filter)}
            pipeline={name}
            filter={filter}
            document={definition.definition as PipelineDocument}
            statuses={health.statuses.map((status) => status.name)}
            version={definition.version}
            about={search.status ? `all items that are ${search.status}` : `items: ${about}`}
            onDone={() => {
              again();
              asked.again();
            }}
          />
        )}
      </Group>
      <Answer of={asked}>
        {({ items }) =>
          items === null || items.nodes.length === 0 ? (
            <Nothing title="No items here" />
          ) : (
            <>
              <ItemTable items={items.nodes} tones={colours} />
              <Group gap="xs" mt="xs">
                {search.after && (
                  <Button variant="default" onClick={() => go({ ...search, after: undefined })}>
                    First page
                  </Button>
                )}
                {items.pageInfo.hasNextPage && (
                  <Button
                    variant="default"
                    onClick={() => go({ ...search, after: items.pageInfo.endCursor ?? undefined })}
                  >
                    Next page
                  </Button>
                )}
              </Group>
            </>
          )
        }
      </Answer>
    </Paper>
  );
}

/** What a tab shows, for a terminal. */
function copied(name: string, tab: PipelineTab, search: PipelineSearch): { path: string; cli: string } {
  const path = `/v1/pipelines/${encodeURIComponent(name)}`;
  switch (tab) {
    case 'board':
      return { path: `${path}/items${itemQuery(search)}`, cli: itemCommand(name, search) };
    case 'health':
      return { path: `${path}/health`, cli: command('ostinato pipelines health', name) };
    case 'moves':
      return { path: `${path}/moves`, cli: command('ostinato pipelines moves', name) };
    case 'definition':
      return { path, cli: command('ostinato pipelines show', name) };
  }
}

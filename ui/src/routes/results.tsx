import { Button, Group, Paper, Stack, Text } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useAsk, useTick } from '../api/live';
import { CopyAs } from '../components/actions';
import { Answer, Nothing } from '../components/Answer';
import { Moment, Page } from '../components/bits';
import { Draft } from '../components/Draft';
import { SearchIcon } from '../components/icons';
import { Payload } from '../components/Payload';
import { command, option, withQuery } from '../model/commands';
import { brief } from '../model/payload';
import { pruned } from '../model/search';
import { RESULTS, SEARCH } from '../services/results';

const route = getRouteApi('/results');
const PAGE = 20;
const WATCHED = { types: ['Job Completed'] };

interface Found {
  readonly resultId: string;
  readonly jobId: string;
  readonly domain: string;
  readonly createdAt: string;
  readonly text: string;
  readonly document: unknown;
  readonly ranks: string | null;
}

export function Results() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const go = (change: { q?: string; domain?: string; after?: string }) =>
    void navigate({ search: pruned({ ...search, after: undefined, ...change }) });
  const filter = { domain: search.domain };
  return (
    <Page
      title="Results"
      about="What jobs have saved, found by words and by likeness"
      actions={
        <CopyAs
          path={withQuery(search.q === undefined ? '/v1/results' : '/v1/results/search', {
            q: search.q,
            domain: search.domain,
          })}
          cli={command(
            search.q === undefined ? 'ostinato results ls' : 'ostinato results search',
            search.q,
            ...option('--domain', search.domain),
          )}
        />
      }
    >
      <Group align="flex-end" gap="xs" mb="md" role="search" aria-label="Results">
        <Draft
          label="What about"
          placeholder="any words"
          w={420}
          leftSection={<SearchIcon size={16} />}
          value={search.q}
          onTake={(q) => go({ q })}
        />
        <Draft label="Domain" placeholder="any" value={search.domain} onTake={(domain) => go({ domain })} />
      </Group>
      {search.q === undefined ? (
        <Newest filter={filter} after={search.after} onNext={(after) => go({ after })} />
      ) : (
        <Hits q={search.q} filter={filter} />
      )}
    </Page>
  );
}

function Hits({ q, filter }: { q: string; filter: { domain?: string } }) {
  const asked = useAsk(SEARCH, { q, filter, first: PAGE });
  return (
    <Answer of={asked}>
      {({ search }) => (
        <Listed found={search.map((hit) => ({ ...hit, text: hit.snippet, ranks: ranksOf(hit.ranks) }))} />
      )}
    </Answer>
  );
}

function Newest({
  filter,
  after,
  onNext,
}: {
  filter: { domain?: string };
  after?: string;
  onNext: (after: string) => void;
}) {
  const asked = useAsk(RESULTS, { filter, first: PAGE, after }, { tick: useTick(WATCHED) });
  return (
    <Answer of={asked}>
      {({ results }) => (
        <>
          <Listed found={results.nodes.map((one) => ({ ...one, ranks: null }))} />
          {results.pageInfo.hasNextPage && (
            <Button variant="default" mt="sm" onClick={() => onNext(results.pageInfo.endCursor!)}>
              Older results
            </Button>
          )}
        </>
      )}
    </Answer>
  );
}

function ranksOf(ranks: unknown): string {
  return Object.entries((ranks ?? {}) as Record<string, number | null>)
    .filter(([, rank]) => rank !== null)
    .map(([by, rank]) => `${by} ${rank}`)
    .join(', ');
}

function Listed({ found }: { found: readonly Found[] }) {
  if (found.length === 0) return <Nothing title="Nothing was found" />;
  return (
    <Stack gap="xs">
      {found.map((one) => (
        <OneResult key={one.resultId} one={one} />
      ))}
    </Stack>
  );
}

function OneResult({ one }: { one: Found }) {
  const [opened, setOpened] = useState(false);
  return (
    <Paper p="sm" component="article">
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Text fz="sm">{brief(one.text, 300) || brief(one.document, 300)}</Text>
          <Text fz="xs" c="dimmed" component="div">
            {one.domain} · <Moment at={one.createdAt} /> ·{' '}
            <Link className="link mono" to="/jobs/$jobId" params={{ jobId: one.jobId }}>
              {one.jobId}
            </Link>
            {one.ranks && ` · ${one.ranks}`}
          </Text>
        </div>
        <Button variant="subtle" flex="none" onClick={() => setOpened(!opened)} aria-expanded={opened}>
          {opened ? 'Less' : 'Details'}
        </Button>
      </Group>
      {opened && <Payload label="Document" value={one.document} />}
    </Paper>
  );
}

/** Ctrl K: go to a page, or to a job or an item by its id. */
import { useHotkeys } from '@mantine/hooks';
import { Spotlight, spotlight, type SpotlightActionData } from '@mantine/spotlight';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { may } from '../services/viewer';
import { useViewer } from './Doorway';
import { ExecutionsIcon, PipelineIcon, SearchIcon } from './icons';
import { PAGES } from './pages';

const AN_ID = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/;
const AN_ITEM = /^[^:]*$/;

export function Palette() {
  const navigate = useNavigate();
  const viewer = useViewer();
  const [query, setQuery] = useState('');
  const text = query.trim();
  useHotkeys([['/', spotlight.open]]); // not where one writes, where it is only a letter
  const pages: SpotlightActionData[] = PAGES.filter(
    (page) => may(viewer, page.scope) && page.name.toLowerCase().includes(text.toLowerCase()),
  ).map((page) => ({
    id: page.to,
    label: page.name,
    description: page.about,
    leftSection: <page.icon />,
    onClick: () => void navigate({ to: page.to }),
  }));
  const found: SpotlightActionData[] = AN_ID.test(text)
    ? [
        {
          id: 'job',
          label: `Job ${text}`,
          description: 'Open the job with this id',
          leftSection: <SearchIcon />,
          onClick: () => void navigate({ to: '/jobs/$jobId', params: { jobId: text } }),
        },
        ...(AN_ITEM.test(text)
          ? [
              {
                id: 'item',
                label: `Item ${text}`,
                description: 'Open the item of a pipeline with this id',
                leftSection: <PipelineIcon />,
                onClick: () => void navigate({ to: '/items/$itemId', params: { itemId: text } }),
              },
            ]
          : []),
        {
          id: 'agent',
          label: `Executions of ${text}`,
          description: 'By the name of the job, or of the agent',
          leftSection: <ExecutionsIcon />,
          onClick: () => void navigate({ to: '/executions', search: { agent: text } }),
        },
        {
          id: 'correlation',
          label: `Everything with the correlation id ${text}`,
          leftSection: <ExecutionsIcon />,
          onClick: () => void navigate({ to: '/executions', search: { correlation: text } }),
        },
      ]
    : [];
  return (
    <Spotlight
      actions={[...pages, ...found]}
      filter={(_, actions) => actions}
      query={query}
      onQueryChange={setQuery}
      shortcut="mod + K"
      tagsToIgnore={[]}
      nothingFound="Nothing is called that"
      searchProps={{
        placeholder: 'A page, or the id of a job or an item',
        'aria-label': 'Search',
        leftSection: <SearchIcon />,
      }}
    />
  );
}

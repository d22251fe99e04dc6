/** One action on all items that are shown: first what would become of each, then in earnest. */
import { Button, Group, Modal, ScrollArea, Select, Stack, Table, Text, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { CombinedError } from 'urql';
import { decisionsOf, placesOf, type Filter, type PipelineDocument } from '../model/pipeline';
import { BULK, type BulkDone, type BulkInput } from '../services/pipelines';
import { may } from '../services/viewer';
import { tell, useAct } from './actions';
import { Trouble } from './Answer';
import { useViewer } from './Doorway';

const MOST = 100;

interface Choice {
  readonly label: string;
  readonly danger?: boolean;
  /** What it needs to know: the field, what it is called, and what there is to choose from. */
  readonly needs?: { field: 'at' | 'decision' | 'status' | 'version'; label: string; optional?: boolean };
  readonly words: { field: 'reason' | 'notes'; label: string } | null;
}

const CHOICES: Record<string, Choice> = {
  restart: {
    label: 'Begin again',
    needs: { field: 'at', label: 'At', optional: true },
    words: { field: 'reason', label: 'Reason' },
  },
  decide: {
    label: 'Decide',
    needs: { field: 'decision', label: 'Decision' },
    words: { field: 'notes', label: 'Notes' },
  },
  move: {
    label: 'Move by hand',
    needs: { field: 'status', label: 'To' },
    words: { field: 'reason', label: 'Reason' },
  },
  migrate: { label: 'Migrate', needs: { field: 'version', label: 'To version' }, words: null },
  'roll-back': { label: 'Roll back', danger: true, words: { field: 'reason', label: 'Reason' } },
};

export interface BulkItemsProps {
  readonly pipeline: string;
  readonly filter: Filter;
  readonly document: PipelineDocument;
  readonly statuses: readonly string[];
  readonly version: number;
  /** Which items, in words. */
  readonly about: string;
  readonly onDone: () => void;
}

export function BulkItems(props: BulkItemsProps) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant="default" onClick={open}>
        Act on all of them…
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        title={<Text fw={600}>Do something with {props.about}</Text>}
        size="lg"
        centered
      >
        <Form {...props} close={close} />
      </Modal>
    </>
  );
}

function Form({
  pipeline,
  filter,
  document,
  statuses,
  version,
  onDone,
  close,
}: BulkItemsProps & { close: () => void }) {
  const act = useAct();
  const viewer = useViewer();
  const [action, setAction] = useState('restart');
  const [value, setValue] = useState<string | null>(null);
  const [words, setWords] = useState('');
  const [preview, setPreview] = useState<BulkDone | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<CombinedError | null>(null);
  const choice = CHOICES[action]!;
  const options = {
    at: placesOf(document),
    decision: decisionsOf(document),
    status: statuses,
    version: Array.from({ length: version }, (_, index) => String(version - index)),
  };
  const missing = choice.needs !== undefined && !choice.needs.optional && value === null;

  /** Whatever is chosen anew is looked at anew. */
  function change(set: () => void) {
    set();
    setPreview(null);
    setError(null);
  }

  async function go(dryRun: boolean) {
    setBusy(true);
    setError(null);
    const input: BulkInput = { action, filter, dryRun, most: MOST };
    const { needs } = choice;
    if (needs?.field === 'version') input.version = Number(value);
    else if (needs !== undefined && value !== null) input[needs.field] = value;
    if (choice.words !== null && words) input[choice.words.field] = words;
    try {
      const done = (await act(BULK, { pipeline, input })).bulkItems;
      if (dryRun) {
        setPreview(done);
        return;
      }
      tell(`${choice.label}: ${done.possible} of ${done.matched} items`);
      onDone();
      close();
    } catch (failure) {
      setError(failure as CombinedError);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Stack>
      <Group align="flex-end" grow>
        <Select
          label="What"
          data={Object.entries(CHOICES)
            .filter(([name]) => may(viewer, name === 'decide' ? 'approvals:decide' : 'jobs:write'))
            .map(([name, one]) => ({ value: name, label: one.label }))}
          value={action}
          allowDeselect={false}
          onChange={(next) =>
            change(() => {
              setAction(next ?? 'restart');
              setValue(null);
            })
          }
        />
        {choice.needs && (
          <Select
            key={action}
            label={choice.needs.label}
            placeholder={choice.needs.optional ? 'where each has got to' : undefined}
            data={[...options[choice.needs.field]]}
            searchable
            clearable={choice.needs.optional}
            value={value}
            onChange={(next) => change(() => setValue(next))}
          />
        )}
      </Group>
      {choice.words && (
        <TextInput
          label={`${choice.words.label}, for the history`}
          value={words}
          onChange={(event) => {
            const { value: said } = event.currentTarget;
            change(() => setWords(said));
          }}
        />
      )}
      {error && <Trouble error={error} />}
      {preview && <Preview done={preview} />}
      <Group justify="flex-end">
        <Button variant="default" onClick={close}>
          Back
        </Button>
        {preview === null ? (
          <Button loading={busy} disabled={missing} onClick={() => void go(true)}>
            Preview
          </Button>
        ) : (
          <Button
            color={choice.danger ? 'red.9' : undefined}
            loading={busy}
            disabled={preview.possible === 0}
            onClick={() => void go(false)}
          >
            {choice.label}: {preview.possible} of {preview.matched}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

function Preview({ done }: { done: BulkDone }) {
  return (
    <div>
      <Text fz="sm" mb={4}>
        Possible for {done.possible} of {done.matched} items.
        {done.more && ` More match: only the first ${done.matched} are looked at each time.`}
      </Text>
      <ScrollArea.Autosize mah={280} viewportProps={{ tabIndex: 0 }}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Item</Table.Th>
              <Table.Th>Status</Table.Th>
              <Table.Th>What would happen</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {done.items.map((item) => (
              <Table.Tr key={item.itemId}>
                <Table.Td className="mono">
                  <Link className="link" to="/items/$itemId" params={{ itemId: item.itemId }}>
                    {item.itemId}
                  </Link>
                </Table.Td>
                <Table.Td>{item.status}</Table.Td>
                <Table.Td c={item.outcome === 'refused' ? 'dimmed' : undefined}>
                  {item.outcome === 'refused' ? `nothing: ${item.detail}` : 'it is done'}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
    </div>
  );
}

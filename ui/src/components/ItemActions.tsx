/** What can be done with an item: only what the server would accept is offered. */
import { Select, Switch, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { beginnings, stepsOf, type PipelineDocument } from '../model/pipeline';
import { itemPath, MIGRATE_ITEM, MOVE_ITEM, RESTART, ROLL_BACK_ITEM, type Item } from '../services/items';
import { may } from '../services/viewer';
import { Action, CopyAs, JsonInput, parsed, useAct } from './actions';
import { useViewer } from './Doorway';
import { PlayIcon, RetryIcon } from './icons';

interface Props {
  readonly item: Item;
  readonly document: PipelineDocument;
  readonly again: () => void;
}

export function ItemActions(props: Props) {
  const { item, document } = props;
  const viewer = useViewer();
  const { places, byHand, newestVersion } = item.detail;
  /** Where a review is waiting, people decide this there. */
  const anew = item.open && item.step !== null ? [] : beginnings(document);
  return (
    <>
      <CopyAs path={itemPath(item.itemId)} cli={`ostinato items show ${item.itemId}`} />
      {may(viewer, 'jobs:write') && (
        <>
          {places.length > 0 && <Resume {...props} />}
          {anew
            .filter(({ at }) => places.includes(at))
            .map(({ decision, at }) => (
              <Again key={decision} {...props} decision={decision} at={at} />
            ))}
          {byHand.length > 0 && <MoveTo {...props} />}
          {newestVersion > item.version && <Migrate {...props} />}
          {item.open && <RollBack {...props} />}
        </>
      )}
    </>
  );
}

function Resume({ item, document, again }: Props) {
  const act = useAct();
  const { places } = item.detail;
  const steps = stepsOf(document);
  const [at, setAt] = useState<string>(places[0]!);
  const [only, setOnly] = useState(false);
  const [text, setText] = useState('');
  const [reason, setReason] = useState('');
  const single = only && steps.includes(at);
  return (
    <Action
      label={item.held ? 'Begin…' : 'Resume from…'}
      icon={item.held ? <PlayIcon size={14} /> : <RetryIcon size={14} />}
      title={item.held ? 'Begin the item' : 'Begin the item again'}
      confirm={single ? `Run ${at}` : 'Go'}
      onOpen={() => {
        setAt(places.includes(item.step ?? '') ? item.step! : places[0]!);
        setText(JSON.stringify(item.detail.payload, null, 2));
      }}
      act={async () => {
        const { restartItem } = await act(RESTART, {
          itemId: item.itemId,
          at,
          only: single,
          payload: edited(text, item),
          reason: reason || null,
        });
        again();
        return `Run ${restartItem.run} has begun at ${at}`;
      }}
    >
      <Select
        label="From"
        data={[...places]}
        value={at}
        allowDeselect={false}
        onChange={(next) => next && setAt(next)}
      />
      <Switch
        size="xs"
        label="This step alone, and nothing after it"
        disabled={!steps.includes(at)}
        checked={single}
        onChange={(event) => setOnly(event.currentTarget.checked)}
      />
      <Text fz="sm" c="dimmed">
        What was done before that place is kept, and not done again.
      </Text>
      <JsonInput label="Payload" about="Change it, if need be" value={text} onChange={setText} />
      <Reason value={reason} onChange={setReason} />
    </Action>
  );
}

function Again({ item, decision, at, again }: Props & { decision: string; at: string }) {
  const act = useAct();
  const [reason, setReason] = useState('');
  return (
    <Action
      label={`${decision}…`}
      title={`${decision}: begin again at ${at}`}
      confirm={decision}
      act={async () => {
        const { restartItem } = await act(RESTART, { itemId: item.itemId, at, reason: reason || null });
        again();
        return `Run ${restartItem.run} has begun at ${at}`;
      }}
    >
      <Reason value={reason} onChange={setReason} />
    </Action>
  );
}

function MoveTo({ item, again }: Props) {
  const act = useAct();
  const { byHand } = item.detail;
  const [status, setStatus] = useState(byHand[0]!);
  const [reason, setReason] = useState('');
  const [text, setText] = useState('');
  return (
    <Action
      label="Move…"
      title="Move it by hand"
      confirm="Move"
      onOpen={() => {
        setStatus(byHand[0]!);
        setText(JSON.stringify(item.detail.payload, null, 2));
      }}
      act={async () => {
        const payload = edited(text, item);
        const { moveItem } = await act(MOVE_ITEM, {
          itemId: item.itemId,
          status,
          payload,
          reason: reason || null,
        });
        again();
        return `The item is ${moveItem.status}`;
      }}
    >
      <Select
        label="To"
        data={[...byHand]}
        value={status}
        allowDeselect={false}
        onChange={(next) => next && setStatus(next)}
      />
      <JsonInput label="Payload" about="Change it, if need be" value={text} onChange={setText} />
      <Reason value={reason} onChange={setReason} />
    </Action>
  );
}

/** The payload if somebody has changed it, else nothing. */
function edited(text: string, item: Item): unknown {
  const { value, error } = parsed(text);
  if (error !== null) throw new Error(error);
  return JSON.stringify(value) === JSON.stringify(item.detail.payload) ? undefined : value;
}

function Migrate({ item, again }: Props) {
  const act = useAct();
  const { newestVersion } = item.detail;
  const versions = Array.from({ length: newestVersion }, (_, index) => String(newestVersion - index));
  const [version, setVersion] = useState(String(newestVersion));
  const [refused, setRefused] = useState<string | null>(null);
  function look(wanted: string) {
    setVersion(wanted);
    setRefused(null);
    act(MIGRATE_ITEM, { itemId: item.itemId, version: Number(wanted), dryRun: true }).catch((error: Error) =>
      setRefused(error.message),
    );
  }
  return (
    <Action
      label="Migrate…"
      title="Go on in another version of the pipeline"
      confirm="Migrate"
      onOpen={() => look(String(newestVersion))}
      act={async () => {
        const done = await act(MIGRATE_ITEM, { itemId: item.itemId, version: Number(version) });
        again();
        return `The item goes on in version ${done.migrateItem.version}`;
      }}
    >
      <Select
        label={`From version ${item.version} to`}
        data={versions.filter((one) => one !== String(item.version))}
        value={version}
        allowDeselect={false}
        onChange={(next) => next && look(next)}
        error={refused}
      />
      <Text fz="sm" c="dimmed">
        It stays {item.status}; a run that is under way begins again at its step.
      </Text>
    </Action>
  );
}

function RollBack({ item, again }: Props) {
  const act = useAct();
  const [reason, setReason] = useState('');
  return (
    <Action
      label="Roll back…"
      title="Give the item up"
      confirm="Roll back"
      danger
      act={async () => {
        const { rollBackItem } = await act(ROLL_BACK_ITEM, { itemId: item.itemId, reason: reason || null });
        again();
        return `The item is ${rollBackItem.status}`;
      }}
    >
      <Text fz="sm">Its run ends, and what its steps did is taken back where they say how.</Text>
      <Reason value={reason} onChange={setReason} />
    </Action>
  );
}

function Reason({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  return (
    <TextInput
      label="Reason, for the history"
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

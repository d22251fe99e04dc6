/** New items, and those that were held back. */
import { NumberInput, Switch, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useAsk } from '../api/live';
import { ENTER, ITEMS, PROCESS } from '../services/pipelines';
import { Action, JsonInput, parsed, useAct } from './actions';
import { PlayIcon } from './icons';
import { counted } from '../model/words';

const MOST = 100;
const EXAMPLE = '{}';

export function PipelineActions({ pipeline, again }: { pipeline: string; again: () => void }) {
  return (
    <>
      <ProcessQueue pipeline={pipeline} again={again} />
      <EnterItem pipeline={pipeline} again={again} />
    </>
  );
}

function ProcessQueue({ pipeline, again }: { pipeline: string; again: () => void }) {
  const act = useAct();
  const [most, setMost] = useState(MOST);
  const held = useAsk(ITEMS, { pipeline, filter: { held: true }, first: MOST });
  const items = held.data?.items;
  const waiting = items ? `${items.nodes.length}${items.pageInfo.hasNextPage ? ' or more' : ''}` : '…';
  return (
    <Action
      label="Process queue…"
      icon={<PlayIcon size={14} />}
      title="Begin items that were held back"
      confirm="Process"
      onOpen={held.again}
      act={async () => {
        const begun = (await act(PROCESS, { pipeline, most })).processItems.length;
        again();
        return `${counted(begun, 'item has', 'items have')} begun`;
      }}
    >
      <Text fz="sm">
        Held back: {waiting}. Those that wait longest come first. Items that were not held back run by
        themselves.
      </Text>
      <NumberInput
        label="At most"
        size="xs"
        min={1}
        max={500}
        value={most}
        onChange={(value) => setMost(Number(value))}
      />
    </Action>
  );
}

function EnterItem({ pipeline, again }: { pipeline: string; again: () => void }) {
  const act = useAct();
  const [text, setText] = useState(EXAMPLE);
  const [itemId, setItemId] = useState('');
  const [hold, setHold] = useState(false);
  return (
    <Action
      label="New item"
      variant="filled"
      title={`Another item for ${pipeline}`}
      confirm="Enter"
      act={async () => {
        const { value, error } = parsed(text);
        if (error !== null) throw new Error(error);
        const item = { payload: value ?? null, itemId: itemId.trim() || null, hold };
        const [entered] = (await act(ENTER, { pipeline, items: [item] })).enterItems;
        again();
        return entered?.created ? `Item ${entered.itemId} is entered` : 'This item was there already';
      }}
    >
      <JsonInput label="Payload" about="What its steps work on" value={text} onChange={setText} />
      <TextInput
        label="Id"
        placeholder="it gets one"
        value={itemId}
        onChange={(event) => setItemId(event.currentTarget.value)}
      />
      <Switch
        size="xs"
        label="Hold it back until it is processed"
        checked={hold}
        onChange={(event) => setHold(event.currentTarget.checked)}
      />
    </Action>
  );
}

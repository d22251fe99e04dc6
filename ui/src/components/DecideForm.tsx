/** Deciding: what was asked can be edited where that is allowed, and notes say why. */
import { Button, Group, Stack, Textarea } from '@mantine/core';
import { useState } from 'react';
import { complain, JsonInput, parsed, tell } from './actions';

export interface Decision {
  readonly decision: string;
  readonly notes: string | null;
  /** Only if it was edited. */
  readonly payload: unknown;
}

export function DecideForm({
  payload: given,
  allowEdit,
  decisions,
  decide,
}: {
  payload: unknown;
  allowEdit: boolean;
  decisions: readonly string[];
  /** Do it; what comes back is told. */
  decide: (made: Decision) => Promise<string>;
}) {
  const [notes, setNotes] = useState('');
  const [text, setText] = useState(() => JSON.stringify(given, null, 2));
  const [busy, setBusy] = useState<string | null>(null);
  const payload = parsed(text);
  const edited = allowEdit && JSON.stringify(payload.value) !== JSON.stringify(given);
  async function go(decision: string) {
    setBusy(decision);
    try {
      tell(await decide({ decision, notes: notes || null, payload: edited ? payload.value : undefined }));
    } catch (error) {
      complain(error);
    } finally {
      setBusy(null);
    }
  }
  return (
    <Stack gap="xs">
      {allowEdit && <JsonInput label="Edit it before you decide" value={text} onChange={setText} />}
      <Textarea
        label="Notes"
        size="xs"
        autosize
        minRows={2}
        value={notes}
        onChange={(event) => setNotes(event.currentTarget.value)}
      />
      <Group gap="xs">
        {decisions.map((decision) => (
          <Button
            key={decision}
            variant={decision === 'approve' ? 'filled' : 'default'}
            loading={busy === decision}
            disabled={payload.error !== null || (busy !== null && busy !== decision)}
            onClick={() => void go(decision)}
          >
            {decision}
          </Button>
        ))}
      </Group>
    </Stack>
  );
}

export function outcome(done: { state: string; approvals: number; quorum: number }): string {
  return done.state === 'waiting'
    ? `${done.approvals} of ${done.quorum} have approved`
    : `Decided: ${done.state}`;
}

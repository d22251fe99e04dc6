import { Alert, NumberInput, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { SET_RETENTION, type Fleet } from '../services/fleet';
import { may } from '../services/viewer';
import { Action, useAct } from './actions';
import { useViewer } from './Doorway';

const DAY = 86_400;

/** For how long finished jobs, and after that their idempotency keys, are kept; admins can change it. */
export function RetentionPanel({ kept, again }: { kept: Fleet['retention']; again: () => void }) {
  const act = useAct();
  const viewer = useViewer();
  const [jobs, setJobs] = useState<number | string>('');
  const [keys, setKeys] = useState<number | string>('');
  return (
    <Stack gap="xs" align="flex-start" data-retention>
      <Text fz="sm">Finished jobs are kept {said(kept.jobs)}.</Text>
      <Text fz="sm">
        Their idempotency keys are kept {said(kept.keys)}
        {kept.keys === null ? '' : ' after that'}.
      </Text>
      {may(viewer, 'admin') && (
        <Action
          label="Change…"
          title="For how long finished jobs are kept"
          confirm="Change it"
          danger
          onOpen={() => {
            setJobs(days(kept.jobs));
            setKeys(days(kept.keys));
          }}
          act={async () => {
            await act(SET_RETENTION, { jobs: seconds(jobs), keys: seconds(keys) });
            again();
            return 'The retention is changed';
          }}
        >
          <Stack gap="sm">
            <Alert color="orange" variant="outline" title="What was kept for longer is removed">
              It is removed soon, with its history, and cannot be brought back.
            </Alert>
            <NumberInput
              label="Days after the end of a job"
              placeholder="for ever"
              min={0}
              value={jobs}
              onChange={setJobs}
            />
            <NumberInput
              label="Days for which its idempotency key is kept after that"
              placeholder="for ever"
              min={0}
              value={keys}
              onChange={setKeys}
            />
          </Stack>
        </Action>
      )}
    </Stack>
  );
}

function said(period: number | null): string {
  return period === null ? 'for ever' : `for ${days(period).toLocaleString()} days`;
}

function days(period: number | null): number | string {
  return period === null ? '' : period / DAY;
}

function seconds(given: number | string): number | null {
  return given === '' ? null : Number(given) * DAY;
}

import { Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { command, jobPath } from '../model/commands';
import { jobActions } from '../model/states';
import { counted } from '../model/words';
import { CANCEL, RESUME, type Job, type ResumePlan } from '../services/jobs';
import { may } from '../services/viewer';
import { Action, CopyAs, useAct } from './actions';
import { Loading } from './Answer';
import { useViewer } from './Doorway';
import { RetryIcon, StopIcon } from './icons';
import { Plan } from './Plan';

export function JobActions({ job, again }: { job: Job; again: () => void }) {
  const act = useAct();
  const viewer = useViewer();
  const { jobId } = job;
  const can = jobActions(job.state, job.failureDetectedAt !== null);
  const [reason, setReason] = useState('');
  const [plan, setPlan] = useState<ResumePlan | null>(null);
  return (
    <>
      <CopyAs path={jobPath(jobId)} cli={command('ostinato jobs show', jobId)} />
      {may(viewer, 'jobs:write') && can.resume && (
        <Action
          label="Resume"
          icon={<RetryIcon size={14} />}
          variant="filled"
          title="Resume the job"
          onOpen={async () => {
            setPlan(null);
            setPlan((await act(RESUME, { jobId, dryRun: true })).resume);
          }}
          act={async () => {
            const { rerun } = (await act(RESUME, { jobId, dryRun: false })).resume;
            again();
            return `The job goes on: ${counted(rerun.length, 'task runs', 'tasks run')} again`;
          }}
        >
          {plan === null ? <Loading lines={3} /> : <Plan plan={plan} />}
        </Action>
      )}
      {may(viewer, 'jobs:write') && can.cancel && (
        <Action
          label="Cancel"
          icon={<StopIcon size={14} />}
          title="Cancel the job"
          confirm="Cancel the job"
          danger
          act={async () => {
            const { cancel } = await act(CANCEL, { jobId, reason: reason || null });
            again();
            return cancel === 'cancelled'
              ? 'The job is cancelled'
              : `The job had already ended: it is ${cancel}`;
          }}
        >
          <Text fz="sm">Whatever runs is stopped, and nothing else begins. It can be resumed later.</Text>
          <TextInput
            label="Reason, for the history"
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
        </Action>
      )}
    </>
  );
}

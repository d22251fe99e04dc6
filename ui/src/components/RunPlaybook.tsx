/** Give a playbook something to do, and watch what it says. */
import { Button, Group, Paper, Stack, Text, Timeline as Steps, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useClient } from 'urql';
import { useAsk } from '../api/live';
import { isOver, told } from '../model/playbook';
import { absolute } from '../model/time';
import { INGEST, OUTPUT, QUERY, STATUSES, type JobStatus, type Playbook } from '../services/playbooks';
import { complain, JsonInput, parsed, useAct } from './actions';
import { Payload } from './Payload';

const EXAMPLES = { data: '{\n  "text": ""\n}', question: '{\n  "question": ""\n}' };
const ANSWER = '$synthesize';

export function RunPlaybook({
  playbook,
  onRun,
}: {
  playbook: Pick<Playbook, 'name' | 'domain' | 'type'>;
  onRun: () => void;
}) {
  const act = useAct();
  const ingests = playbook.type === 'ingestion';
  const [text, setText] = useState(ingests ? EXAMPLES.data : EXAMPLES.question);
  const [jobId, setJobId] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  async function send() {
    setBusy(true);
    try {
      const given = { domainId: playbook.domain, data: parsed(text).value ?? null, playbook: playbook.name };
      const { accepted } = await act(ingests ? INGEST : QUERY, given);
      setJobId(accepted.jobId);
      onRun();
    } catch (error) {
      complain(error);
    } finally {
      setBusy(false);
    }
  }
  return (
    <Paper component="section" aria-label="Try it">
      <Title order={2} mb="xs">
        {ingests ? 'Give it data' : 'Ask it'}
      </Title>
      <Stack gap="xs">
        <JsonInput
          label="Data"
          about="Any JSON: what the agents get as raw_data"
          value={text}
          onChange={setText}
        />
        <Group>
          <Button loading={busy} disabled={parsed(text).error !== null} onClick={() => void send()}>
            {ingests ? 'Ingest' : 'Ask'}
          </Button>
        </Group>
        {jobId !== null && <Watch key={jobId} jobId={jobId} />}
      </Stack>
    </Paper>
  );
}

function Watch({ jobId }: { jobId: string }) {
  const statuses = useStatuses(jobId);
  const over = isOver(statuses);
  const answer = useAsk(OUTPUT, { jobId, taskId: ANSWER }, { pause: !over, tick: over ? 1 : 0 });
  const output = answer.data?.task?.detail.output;
  return (
    <div role="log" aria-label="How it stands">
      <Text fz="sm" mb="xs">
        <Link className="link mono" to="/jobs/$jobId" params={{ jobId }}>
          {jobId}
        </Link>
      </Text>
      <Steps active={statuses.length - 1} bulletSize={12} lineWidth={2}>
        {statuses.map((one) => (
          <Steps.Item key={one.cursor} title={<Text fz="sm">{one.status}</Text>}>
            <Text fz="xs" c="dimmed">
              {one.message && `${one.message} · `}
              {absolute(Date.parse(one.timestamp))}
            </Text>
          </Steps.Item>
        ))}
      </Steps>
      {over && output !== undefined && output !== null && <Payload label="Answer" value={output} />}
    </div>
  );
}

function useStatuses(jobId: string): readonly JobStatus[] {
  const client = useClient();
  const [statuses, setStatuses] = useState<readonly JobStatus[]>([]);
  useEffect(() => {
    const { unsubscribe } = client.subscription(STATUSES, { jobId }).subscribe((result) => {
      if (result.data) setStatuses((before) => told(before, result.data!.jobStatus));
    });
    return unsubscribe;
  }, [client, jobId]);
  return statuses;
}

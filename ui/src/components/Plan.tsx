/** What would run again, what after it, and what would not. */
import { Code, List, Stack, Text } from '@mantine/core';
import type { TaskPlan } from '../model/resume';
import type { ResumePlan } from '../services/jobs';

const LISTED = 12;

export function Plan({ plan }: { plan: ResumePlan }) {
  return (
    <Stack gap="xs">
      <Named title="Run again" names={plan.rerun} />
      <Named title="Run after them" names={plan.waiting} />
      <Named title="Not run again, their results are used" names={plan.reused} />
      <Named title={`Not run again, compensated by ${plan.undoneBy.join(', ')}`} names={plan.undone} />
    </Stack>
  );
}

export function PlanOfTask({ plan }: { plan: TaskPlan }) {
  return (
    <Stack gap="xs">
      <Named title="Run again" names={plan.rerun} />
      <Named title="Run after it" names={plan.waiting} />
      <Named title="Still blocked, by something else that failed" names={plan.held} />
      <Named title="Not run again, their results are used" names={plan.reused} />
    </Stack>
  );
}

function Named({ title, names }: { title: string; names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <div>
      <Text fz="sm" fw={600}>
        {title} ({names.length})
      </Text>
      <List size="sm" listStyleType="none">
        {names.slice(0, LISTED).map((name) => (
          <List.Item key={name}>
            <Code>{name}</Code>
          </List.Item>
        ))}
        {names.length > LISTED && <List.Item>and {names.length - LISTED} more</List.Item>}
      </List>
    </div>
  );
}

import { expect, test } from 'vitest';
import { agentRows, isOver, told } from './playbook';

test('agents stand where their graph and they themselves say', () => {
  const rows = agentRows(
    { agents: ['place', 'district', 'risk'], graph: 'places' },
    {
      edges: [
        { from: 'place', to: 'district' },
        { from: 'elsewhere', to: 'risk' },
      ],
    },
    [
      { name: 'place', kind: 'function' },
      { name: 'district', kind: 'llm', dependencyParents: ['place'] },
    ],
  );
  expect(rows.map(({ taskId, state, dependsOn }) => [taskId, state, dependsOn])).toEqual([
    ['place', 'function', []],
    ['district', 'llm', ['place']],
    ['risk', 'unknown', []],
  ]);
});

test('a status that comes again is told once', () => {
  const first = told([], { status: 'loading_agents', cursor: '1' });
  const second = told(first, { status: 'completed', cursor: '2' });
  expect(told(second, { status: 'loading_agents', cursor: '1' })).toBe(second);
  expect([isOver(first), isOver(second)]).toEqual([false, true]);
});

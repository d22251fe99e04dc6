import { Button, Checkbox, Group, MultiSelect, Select, TextInput } from '@mantine/core';
import { pruned, refined, type ExecutionSearch } from '../model/search';
import { label, stateOf, STATUSES, type Status } from '../model/states';
import { fromLocal, toLocal } from '../model/time';
import { Draft } from './Draft';

const RANGES: Record<string, number> = { '1 h': 3_600e3, '24 h': 86_400e3, '7 d': 604_800e3 };

export function ExecutionFilters({
  search,
  onChange,
}: {
  search: ExecutionSearch;
  onChange: (search: ExecutionSearch) => void;
}) {
  const take = (change: Partial<ExecutionSearch>) => onChange(refined(search, change));
  return (
    <div role="search" aria-label="Executions">
      <Group gap="xs" align="flex-end" mb="sm">
        <Draft
          label="Agent or job name"
          placeholder="any"
          w={150}
          value={search.agent}
          onTake={(agent) => take({ agent })}
        />
        <MultiSelect
          label="Status"
          placeholder={search.status ? undefined : 'any'}
          w={230}
          data={STATUSES.map((status) => ({ value: status, label: label(stateOf(status)) }))}
          value={search.status ?? []}
          onChange={(status) => take({ status: status.length ? (status as Status[]) : undefined })}
          clearable
        />
        <Draft
          label="Tag"
          placeholder="key or key=value"
          w={130}
          value={search.tag}
          onTake={(tag) => take({ tag })}
        />
        <Draft
          label="Correlation id"
          placeholder="any"
          w={150}
          value={search.correlation}
          onTake={(correlation) => take({ correlation })}
        />
        <TextInput
          label="Started from"
          type="datetime-local"
          value={toLocal(search.from)}
          onChange={(event) => take({ from: fromLocal(event.currentTarget.value) })}
        />
        <TextInput
          label="Until"
          type="datetime-local"
          value={toLocal(search.until)}
          onChange={(event) => take({ until: fromLocal(event.currentTarget.value) })}
        />
        <Button.Group>
          {Object.entries(RANGES).map(([name, span]) => (
            <Button
              key={name}
              variant="default"
              onClick={() => take({ from: new Date(Date.now() - span).toISOString(), until: undefined })}
            >
              {name}
            </Button>
          ))}
        </Button.Group>
        <Select
          label="Order"
          w={110}
          data={[
            { value: 'newest', label: 'newest first' },
            { value: 'oldest', label: 'oldest first' },
          ]}
          value={search.order ?? 'newest'}
          onChange={(order) => take({ order: order === 'oldest' ? 'oldest' : undefined })}
          allowDeselect={false}
        />
        <Checkbox
          label="The engine's own too"
          mb={8}
          checked={search.engine === true}
          onChange={(event) => take({ engine: event.currentTarget.checked ? true : undefined })}
        />
        <Button
          variant="subtle"
          onClick={() => onChange({})}
          disabled={Object.keys(pruned(search)).length === 0}
        >
          Clear
        </Button>
      </Group>
    </div>
  );
}

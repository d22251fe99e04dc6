import { TextInput, type TextInputProps } from '@mantine/core';
import { useState } from 'react';

/** Text that is taken when somebody is done with it: at Enter, or when they go on to something else. */
export function Draft({
  value,
  onTake,
  ...props
}: Omit<TextInputProps, 'value' | 'onChange'> & {
  value: string | undefined;
  onTake: (value: string | undefined) => void;
}) {
  const [draft, setDraft] = useState(value ?? '');
  const [seen, setSeen] = useState(value);
  if (seen !== value) {
    setSeen(value);
    setDraft(value ?? '');
  }
  function take() {
    const next = draft.trim() || undefined;
    if (next !== value) onTake(next);
  }
  return (
    <TextInput
      {...props}
      value={draft}
      onChange={(event) => setDraft(event.currentTarget.value)}
      onBlur={take}
      onKeyDown={(event) => event.key === 'Enter' && take()}
    />
  );
}

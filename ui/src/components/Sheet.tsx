import { Table, type TableProps } from '@mantine/core';

/** A table that can be wider than the page: then it scrolls, and the page does not. */
export function Sheet(props: TableProps) {
  return (
    <div className="sheet">
      <Table {...props} />
    </div>
  );
}
